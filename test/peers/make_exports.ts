/**
 * Writes exports that src/bench/peers/torch_export.py checks on a machine with PyTorch, with their inputs and the CPU device's outputs:
 *
 *     npx rolldown -c && node --import ./dist/register.js test/peers/make_exports.ts .heddle/exports [--target simt] [--only llama-f16]
 *     python3 src/bench/peers/torch_export.py .heddle/exports/*
 *
 * The first needs CMake and, for CUDA, nvcc, but no GPU; the second Python with PyTorch, and nothing else of heddle.
 */
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { formatSafetensors, type StoredTensor } from '../../src/checkpoint/safetensors.js'
import { readCheckpoint } from '../../src/models/encoder/calibration.js'
import { formatScales, perSite } from '../../src/quant/index.js'
import { decode } from '../../src/runtime/buffer.js'
import { int8BetweenDevices, modelTolerance } from '../../src/verify/tolerance.js'
import { heddle, punctuationModel, repository } from '../cli/host.js'
import { builtByCmake, i32, linked, readTensors, type Tensors } from '../export/built.js'

interface Bounds {
  /** Largest error of a float output, relative to its largest value. */
  readonly tolerance: number
  /** Share of an integer output that may be another. */
  readonly differ: number
}

interface Case {
  readonly program: string
  readonly arguments: readonly string[]
  readonly inputs: Tensors
  readonly dims: Readonly<Record<string, number>>
  /** The dimensions among these that do not follow from an input. */
  readonly said: readonly string[]
  /** Outputs in the order of the program. */
  readonly outputs: readonly string[]
  /** @param scale root mean square of the expected values, and their largest magnitude */
  bounds(scale: number, largest: number): Bounds
}

const layers = 4
const [b, s] = [6, 64]
const lengths = [64, 17, 40, 3, 33, 58]
const tokens = lengths.reduce((sum, length) => sum + length, 0)
const texts = {
  ids: i32(
    [b * s],
    Array.from({ length: b * s }, (_, i) => (i % s < (lengths[Math.floor(i / s)] ?? 0) ? ((i * 37) % 1900) + 5 : 0)),
  ),
  typeIds: i32([b * s], new Array(b * s).fill(0)),
  lengths: i32([b], lengths),
}
const encoder = { program: 'bert', inputs: texts, outputs: ['logits', 'labels'] }
const model = (folder: string): readonly string[] => ['--model', `${repository}/test/data/models/${folder}`]

const steps = {
  'state.step': i32([1], [0]),
  'state.words': i32([4], [7, 101, 33, 250]),
  'state.places': i32([4], [0, 0, 0, 0]),
  'state.finished': i32([4], [0, 0, 0, 0]),
  'state.ends': i32([1], [-1]),
  'state.limit': i32([4], [8, 8, 8, 8]),
  'state.history': i32([8, 4], new Array<number>(32).fill(0)),
}

const cases: Readonly<Record<string, Case>> = {
  'bert-f16': {
    ...encoder,
    arguments: ['--plan', 'best-encoder', '--dtype', 'f16', ...model('kjv-punct-bert')],
    ...{ dims: { b, s, t: tokens }, said: ['s', 't'] },
    bounds: (scale, largest) => {
      const { absolute, labelsDiffer } = modelTolerance('f16', layers, scale)
      return { tolerance: absolute / largest, differ: labelsDiffer }
    },
  },
  'bert-int8': {
    ...encoder,
    arguments: ['--plan', 'ft-v3-mode1', '--scales', 'SCALES', ...model('kjv-punct-bert')],
    ...{ dims: { b, s }, said: ['s'] },
    bounds: () => ({ tolerance: int8BetweenDevices.relative, differ: int8BetweenDevices.labelsDiffer }),
  },
  'llama-f16': {
    program: 'llama_step',
    arguments: ['--plan', 'best-llama', '--dtype', 'f16', ...model('llama-families/qwen3')],
    ...{ inputs: steps, outputs: [], dims: { r: 4, u: 16, s: 8, f: 1, q: 1 }, said: ['r', 'u', 's', 'f', 'q'] },
    bounds: (scale, largest) => ({ tolerance: modelTolerance('f16', layers, scale).absolute / largest, differ: 0 }),
  },
}

/** Scales with 4 as the largest magnitude everywhere: meaningless for texts, but the same on every device. */
async function scalesOf(folder: string): Promise<string> {
  const { config, identity } = await readCheckpoint(punctuationModel)
  const layer = () => perSite(() => 4)
  const file = join(folder, 'scales.json')
  const made = { model: identity, method: { name: 'imported' }, layers: Array.from({ length: config.layers }, layer) } as const
  await writeFile(file, formatScales(made))
  return file
}

/** Values of a tensor of floats, none of another. */
function floats({ dtype, data }: StoredTensor): Float32Array {
  const type = dtype === 'F32' ? 'f32' : dtype === 'F16' ? 'f16' : undefined
  return type === undefined ? new Float32Array() : Float32Array.from(decode(type, data))
}

/** @param work a separate folder that lives as long as the process: others link against objects compiled there */
async function make(name: string, one: Case, out: string, target: 'simt' | 'cuda', work: string): Promise<void> {
  const folder = join(work, 'export')
  const scales = await scalesOf(work)
  const argv = one.arguments.map((argument) => (argument === 'SCALES' ? scales : argument))
  const { exitCode, log } = await heddle(['export', one.program, '--out', folder, '--target', target, ...argv])
  if (exitCode !== 0) throw new Error(log)
  const reference = await linked(repository, folder, one.program)
  const weights = await readTensors(join(folder, 'weights.safetensors'))
  // States without an initial value have undefined contents: they start with zeros here.
  const began = await reference.run(weights, one.inputs, one.dims)
  const zeros = Object.entries(began).flatMap(([state, { dtype, shape, data }]) =>
    state.startsWith('state.') && !Object.hasOwn(one.inputs, state)
      ? [[state, { dtype, shape, data: new Uint8Array(data.byteLength) }] as const]
      : [],
  )
  const inputs = { ...one.inputs, ...Object.fromEntries(zeros) }
  const expected = await reference.run(weights, inputs, one.dims)
  const values = Object.values(expected).flatMap((tensor) => [...floats(tensor)])
  const scale = Math.sqrt(values.reduce((sum, value) => sum + value ** 2, 0) / Math.max(1, values.length))
  const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), Number.MIN_VALUE)
  await builtByCmake(folder, target)

  const to = join(out, name)
  await rm(to, { recursive: true, force: true })
  await mkdir(join(to, 'build'), { recursive: true })
  const say = Object.fromEntries(one.said.map((dim) => [dim, one.dims[dim]]))
  const { outputs } = one
  await writeFile(join(to, 'check.json'), `${JSON.stringify({ say, outputs, ...one.bounds(scale, largest) }, undefined, 2)}\n`)
  await writeFile(join(to, 'inputs.safetensors'), formatSafetensors(Object.entries(inputs)))
  await writeFile(join(to, 'expected.safetensors'), formatSafetensors(Object.entries(expected)))
  const kept = [`${one.program}_torch.py`, 'gather_tree_torch.py', 'weights.safetensors', `build/lib${one.program}.so`]
  for (const file of kept) await cp(join(folder, file), join(to, file))
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { target: { type: 'string', default: 'cuda' }, only: { type: 'string', multiple: true } },
})
const [out] = positionals
if (out === undefined || (values.target !== 'cuda' && values.target !== 'simt'))
  throw new Error('expected a folder to write, and --target cuda or simt')
const work = await mkdtemp(join(tmpdir(), 'heddle-exports-'))
try {
  for (const name of values.only ?? Object.keys(cases)) {
    const found = cases[name]
    if (found === undefined) throw new Error(`expected one of ${Object.keys(cases).join(', ')}, got ${name}`)
    process.stderr.write(`${name}\n`)
    await mkdir(join(work, name))
    await make(name, found, resolve(out), values.target, join(work, name))
  }
} finally {
  await rm(work, { recursive: true, force: true })
}
