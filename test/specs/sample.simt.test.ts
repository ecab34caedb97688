/**
 * Draws of the generated kernel on the simt device: their frequencies, mode by mode, and that they depend only on seed, step and the row itself.
 * Kernels with a planted fault must fail the tests that the shipped one passes.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import * as ops from '../../specs/ops/sample.js'
import type { HostTensor } from '../../src/ir/evaluate.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { runOp } from '../../src/lang/run.js'
import { type ChiSquare, chiSquare } from '../../src/verify/chi_square.js'
import { plain, probabilities, type Request } from '../../src/verify/probabilities.js'
import { type Host, launch, openKernels } from '../emit/host.js'
import { read } from '../frontend/refuse.js'
import { inTurn } from '../turns.js'
import { numbers } from './sampling.js'

/** The shipped op, and copies of it with a bug each. */
const bugs = {
  'one percent of the tail dropped': ['const bar = sum(v, weights) *', 'const bar = 0.99 * sum(v, weights) *'],
  'temperature two percent off': ['= 1 / temperature(r)', '= 1 / (1.02 * temperature(r))'],
  'cumulative sum off by one': ['running(c) > bar', 'running(c) - weights(c) > bar'],
} as const

const sourceOf = (file: string): string => readFileSync(join(process.cwd(), 'specs/ops', file), 'utf8')
const source = sourceOf('sample.ts')

function withBug(i: number, [text, wrong]: readonly [string, string]): string {
  expect(source.split(text), text).toHaveLength(2)
  return source.replace(text, wrong).replace("op('sample'", `op('sample_bug${i}'`).replace("op('greedy'", `op('greedy_bug${i}'`)
}

const { kernels } = read({
  'ends.ts': sourceOf('ends.ts'),
  'sample.ts': source,
  ...Object.fromEntries(Object.values(bugs).map((bug, i) => [`bug${i}.ts`, withBug(i, bug)])),
})

const kernelNamed = (name: string): Kernel => {
  const kernel = kernels.find((candidate) => candidate.name === name)
  if (kernel === undefined) throw new Error(`no kernel ${name}`)
  return { ...kernel, types: { T: name === 'sample' ? ['f32', 'f16'] : ['f32'] } }
}

/** Bugs whose turn it is, and the ops that have them. */
const planted = inTurn(Object.keys(bugs).map((bug, i) => [bug, `sample_bug${i}`] as const))

let host: Host

beforeAll(async () => {
  host = await openKernels(['sample', ...planted.map(([, name]) => name)].map(kernelNamed))
})
afterAll(() => host?.close())

/** Inputs of all rows by tensor; missing ones never end a row. */
type Inputs = Readonly<Record<string, (i: number) => number>>

/** The tokens drawn for `rows` rows, and the rows that are finished afterwards. */
async function draw(name: string, type: 'f32' | 'f16', rows: number, vocab: number, inputs: Inputs) {
  const common: Inputs = { step: () => 0, finished: () => 0, limit: () => 1000, ends: () => -1 }
  const dims = { r: rows, v: vocab, o: 1, e: 1 }
  const made = (tensor: string) => inputs[tensor] ?? common[tensor] ?? (() => Number.NaN)
  const outcome = await launch(host, kernelNamed(name), host.entry(`${name}__${type}`), dims, made)
  const [words, finished] = outcome.outputs.map(({ stored }) => Array.from(stored))
  if (words === undefined || finished === undefined) throw new Error('a draw has two outputs')
  return { words, finished, inputs: outcome.inputs }
}

const requested = ({ temperature, topK, topP, minP }: Request): Inputs => ({
  temperature: () => temperature,
  topK: () => topK,
  topP: () => topP,
  minP: () => minP,
})

/** One token with half of the chances and many that share the rest, no two alike: a wrong temperature shifts much between them. */
const vocab = 50
const logits = Array.from({ length: vocab }, (_, i) => Math.fround(i === 20 ? 4 : Math.sin(i * 1.7) + i / 100))
const alike = Math.fround(0.7)

const modes: Readonly<Record<string, Request>> = {
  temperature: { ...plain, temperature: alike },
  'top-k': { ...plain, topK: 10 },
  'top-p': { ...plain, topP: Math.fround(0.8) },
  'top-k and top-p': { ...plain, temperature: 2, topK: 20, topP: Math.fround(0.6) },
  'min-p': { ...plain, temperature: 1.5, minP: Math.fround(0.1) },
}

/** Frequencies of draws for one request, each with its own seed, compared with the expected probabilities. */
async function frequencies(name: string, request: Request, draws: number, type: 'f32' | 'f16' = 'f32'): Promise<ChiSquare> {
  const { words } = await draw(name, type, draws, vocab, {
    logits: (i) => logits[i % vocab] ?? 0,
    ...requested(request),
    seedsLow: (i) => i,
    seedsHigh: () => 20,
    step: () => 7,
  })
  const counts = Array.from({ length: vocab }, () => 0)
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1
  return chiSquare(counts, probabilities(logits, request))
}

const draws = 200_000

describe('words come as often as they should', () => {
  it.each(inTurn(Object.entries(modes)))('by %s', async (_, request) => {
    expect(await frequencies('sample', request, draws)).toMatchObject({ passed: true })
  })

  it.each(planted)('that %s fails', async (_, name) => {
    const { temperature } = modes
    expect(await frequencies(name, temperature ?? plain, draws)).toMatchObject({ passed: false })
  })
})

/** Requests that differ in everything; `at` selects the request of a row. */
const requests = 7

function rowsFor(at: readonly number[], size: number): Inputs {
  const tables = Array.from({ length: requests }, (_, request) => {
    const next = numbers(request * 977 + size)
    return Array.from({ length: size }, () => 10 * next() - 5 + (next() < 0.001 ? 4 : 0))
  })
  const of = (values: readonly number[]) => (i: number) => values[(at[i] ?? 0) % values.length] ?? 0
  return {
    logits: (i) => tables[at[Math.floor(i / size)] ?? 0]?.[i % size] ?? 0,
    temperature: of([0.5, 1, 1.5, 0.8, 1, 2, 1]),
    topK: of([0, 3, 0, 64, 1, 0, 0]),
    topP: of([1, 1, 0.9, 0.5, 1, 0.3, 1]),
    minP: of([0, 0, 0, 0, 0, 0.02, 0]),
    seedsLow: of([1, 2, 3, 4, 5, 6, 7]),
    seedsHigh: of([11, -12, 13, 14, -15, 16, 17]),
    step: () => 5,
  }
}

describe.each([17, 1000, 32_000, 50_257])('with a vocabulary of %i', (size) => {
  it.each(['f32', 'f16'] as const)('%s draws the same as its body, in any batch and place', async (type) => {
    const seven = [0, 1, 2, 3, 4, 5, 6]
    const { words, inputs } = await draw('sample', type, 7, size, rowsFor(seven, size))
    const body = runOp(ops.sample, inputs as Record<string, HostTensor>)
    expect(words).toEqual(Array.from(body.words?.data ?? []))
    for (const request of [0, 2, 5]) {
      expect((await draw('sample', type, 1, size, rowsFor([request], size))).words).toEqual([words[request]])
    }
    const many = Array.from({ length: 64 }, (_, i) => (i * 3 + 2) % requests)
    expect((await draw('sample', type, 64, size, rowsFor(many, size))).words).toEqual(many.map((request) => words[request]))
  })
})

it('a row ends by an end id or its last token, and stays finished', async () => {
  const of = (values: readonly number[]) => (i: number) => values[i] ?? 0
  // Word 20 is the end id and the likeliest: taken, not taken, finished before, and the last token. Rows 1 and 3 like another word best.
  const { words, finished } = await draw('sample', 'f32', 4, vocab, {
    logits: (i) => (i % vocab === 20 && Math.floor(i / vocab) % 2 === 1 ? -9 : (logits[i % vocab] ?? 0)),
    ...requested({ ...plain, topK: 1 }),
    seedsLow: () => 1,
    seedsHigh: () => 2,
    step: () => 6,
    ends: () => 20,
    limit: of([100, 100, 100, 7]),
    finished: of([0, 0, 1, 0]),
  })
  const second = logits.indexOf(Math.max(...logits.filter((_, i) => i !== 20)))
  expect(words).toEqual([20, second, 20, second])
  expect(finished).toEqual([1, 0, 1, 1])
})
