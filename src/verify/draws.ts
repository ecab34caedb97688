/**
 * Checks the frequencies of tokens drawn by a device: for each sampling mode, tokens of many rows with different seeds are compared with their
 * probabilities. The checks of kernels against their bodies draw only a few rows; a bias shows in millions only.
 */
import { sampleStep, sampleTopStep } from '../../specs/graphs/sampling.js'
import { layouts } from '../../specs/index.js'
import type { Manifest } from '../emit/manifest/manifest.js'
import { beamParts } from '../models/decoding/beam_search.js'
import { candidatesOf } from '../models/decoding/generation_options.js'
import { decode, encode } from '../runtime/buffer.js'
import type { KernelSource } from '../runtime/library.js'
import type { NativeDevice } from '../runtime/native.js'
import { buildProgram } from '../runtime/program.js'
import { openSession, type Session } from '../runtime/session.js'
import { chiSquare } from './chi_square.js'
import type { CheckResult } from './conformance.js'
import { plain, probabilities, type Request } from './probabilities.js'

/** Storage holds these exactly. */
const f32 = Math.fround

const modes: Readonly<Record<string, Request>> = {
  temperature: { ...plain, temperature: f32(0.7) },
  'top-k of any size': { ...plain, topK: 80 },
  'top-k among candidates': { ...plain, topK: 10 },
  'top-p': { ...plain, topP: f32(0.8) },
  'top-k among candidates and top-p': { ...plain, temperature: 2, topK: 20, topP: f32(0.6) },
  'min-p': { ...plain, temperature: 1.5, minP: f32(0.1) },
}

/** More tokens than a warp holds in registers, so that blocks search. */
const vocab = 600

/** One likely token, and others that share the rest with distinct probabilities. */
const logits = Float32Array.from({ length: vocab }, (_, i) => (i === 20 ? 4 : 2 * Math.sin(i * 1.7) + i / 1000))

/** Names of the checks; each is a separate run. */
export const drawModes: readonly string[] = Object.keys(modes)

/** Checks one mode. A GPU draws two million tokens, the CPU device a number that takes some seconds. */
export async function checkDraws(
  subject: { readonly device: NativeDevice; readonly library: KernelSource; readonly manifest: Manifest },
  mode: string,
  name: string,
): Promise<CheckResult> {
  const request = modes[mode]
  if (request === undefined) throw new Error(`internal: no mode ${mode}`)
  const [rows, rounds] = subject.device.info().kind === 'cuda' ? [5000, 400] : [1000, 1]
  const session = await openSession({ ...subject, layouts, weights: {} })
  try {
    const counts = await countWords(session, request, rows, rounds)
    const { passed, statistic, critical } = chiSquare(counts, probabilities(Array.from(logits), request))
    const detail = `${rounds * rows} draws: chi-square ${statistic.toFixed(1)}, critical ${critical.toFixed(1)}`
    return { name, passed, detail }
  } finally {
    session.release()
  }
}

/** Number of draws of each token. */
async function countWords(session: Session, request: Request, rows: number, rounds: number): Promise<number[]> {
  const k = candidatesOf({ ...request, kind: 'sampling', seeds: [] })
  const { graph } = k === undefined ? sampleStep : sampleTopStep
  const same = (names: readonly string[]): Record<string, string> => Object.fromEntries(names.map((name) => [name, name]))
  const inputs = Object.keys(graph.inputs)
  const program = await buildProgram({
    session,
    applications: [
      { graph, label: 'draw', inputs: same(inputs), weights: {}, outputs: { words: 'words', finished: 'done' }, attrs: {} },
    ],
    inputs,
    outputs: ['words'],
    dims: { r: rows, v: vocab, e: 1, o: 1, ...(k === undefined ? {} : { p: beamParts(vocab), k }) },
    types: {},
  })
  const counts = Array.from({ length: vocab }, () => 0)
  try {
    const common = inputsOf(request, rows)
    for (let round = 0; round < rounds; round++) {
      const { words } = await program.run({ ...common, seedsHigh: encode('i32', new Int32Array(rows).fill(round)) })
      for (const word of decode('i32', words ?? new Uint8Array())) counts[word] = (counts[word] ?? 0) + 1
    }
    return counts
  } finally {
    program.release()
  }
}

function inputsOf({ temperature, topK, topP, minP }: Request, rows: number): Record<string, Uint8Array> {
  const floats = (value: number): Uint8Array => encode('f32', new Float32Array(rows).fill(value))
  const integers = (value: number): Uint8Array => encode('i32', new Int32Array(rows).fill(value))
  const table = new Float32Array(rows * vocab)
  for (let row = 0; row < rows; row++) table.set(logits, row * vocab)
  return {
    logits: encode('f32', table),
    temperature: floats(temperature),
    topK: integers(topK),
    topP: floats(topP),
    minP: floats(minP),
    seedsLow: encode(
      'i32',
      Int32Array.from({ length: rows }, (_, row) => row),
    ),
    step: encode('i32', Int32Array.of(7)),
    finished: integers(0),
    limit: integers(1000),
    ends: encode('i32', Int32Array.of(-1)),
  }
}
