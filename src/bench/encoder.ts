/**
 * Times encoder plans on a device: whole forward passes, token ids to outputs, replayed without copies. The plans of a
 * shape take turns, so that a change of the device's clock meets all of them.
 */
import { layouts } from '../../specs/index.js'
import type { Manifest } from '../emit/manifest.js'
import { usageError } from '../errors.js'
import { assembleBert, bertDims, bertInputs } from '../models/bert.js'
import type { BertConfig } from '../models/config.js'
import type { FloatType } from '../models/convert.js'
import { findPlan, type ModelPlan } from '../models/plans.js'
import { encode } from '../runtime/buffer.js'
import type { NativeDevice, NativeLibrary } from '../runtime/native.js'
import { buildProgram, type Program } from '../runtime/program.js'
import { openSession, type Session } from '../runtime/session.js'
import { integer, random } from '../verify/random.js'
import type { Lengths } from './lengths.js'
import { type Summary, summarise } from './statistics.js'
import { syntheticWeights } from './synthetic.js'

export interface Shape {
  readonly batch: number
  readonly seq: number
}

export interface EncoderBench {
  readonly device: NativeDevice
  readonly library: NativeLibrary
  readonly manifest: Manifest
  readonly config: BertConfig
  readonly dtype: FloatType
  readonly plans: readonly string[]
  readonly shapes: readonly Shape[]
  readonly lengths: Lengths
  /** Timed forward passes of each plan and shape. */
  readonly repeats: number
  /** Also times every step by itself. */
  readonly profile: boolean
  readonly signal?: AbortSignal | undefined
}

export interface StepTime {
  /** What runs: an instance key, or `matmul`. */
  readonly kernel: string
  /** How often it runs in a forward pass. */
  readonly count: number
  readonly milliseconds: number
}

export interface EncoderTimes extends Shape {
  readonly plan: string
  readonly meanLength: number
  readonly milliseconds: Summary
  readonly kernels: number
  readonly matmuls: number
  readonly captured: boolean
  readonly memory: Program['memory']
  /** Of all steps: bytes of the buffers they touch, arithmetic of the matmuls. */
  readonly work: { readonly bytes: number; readonly flops: number }
  /** Time by kernel, longest first. */
  readonly profile: readonly StepTime[] | undefined
}

const rounds = 5
const warmup = 3

/** Runs the benchmark and reports each plan and shape as it is measured. @throws usage `plan.unknown`, `bench.shape` */
export async function benchEncoder(bench: EncoderBench, onResult?: (times: EncoderTimes) => void): Promise<EncoderTimes[]> {
  const { device, library, manifest, config, dtype, shapes } = bench
  const tooLong = shapes.find(({ seq }) => seq > config.positions)
  if (tooLong !== undefined) {
    throw usageError('bench.shape', `sequence ${tooLong.seq} is longer than the model's ${config.positions} positions`)
  }
  const plans = bench.plans.map((name) => findPlan(name, manifest.plans))
  const session = await openSession({ device, library, manifest, layouts, weights: syntheticWeights(config, dtype) })
  const results: EncoderTimes[] = []
  try {
    for (const shape of shapes) {
      const programs = new Map<string, Program>()
      try {
        for (const plan of plans) programs.set(plan.name, await prepare(bench, session, plan, shape))
        for (const times of await measure(bench, shape, programs)) {
          onResult?.(times)
          results.push(times)
        }
      } finally {
        for (const program of programs.values()) program.release()
      }
    }
  } finally {
    session.release()
  }
  return results
}

/** The program of a plan and shape, run once, so that its inputs are in place and its graph is captured. */
async function prepare(
  { config, dtype, lengths }: EncoderBench,
  session: Session,
  plan: ModelPlan,
  shape: Shape,
): Promise<Program> {
  const program = await buildProgram({
    session,
    ...assembleBert(config, plan, false),
    inputs: bertInputs,
    dims: bertDims(config, shape),
    types: { T: dtype },
  })
  try {
    const next = random(`ids ${shape.batch}x${shape.seq}`)
    const ids = Int32Array.from({ length: shape.batch * shape.seq }, () => integer(next, 0, config.vocab - 1))
    await program.run({
      ids: encode('i32', ids),
      typeIds: encode('i32', new Int32Array(ids.length)),
      lengths: encode('i32', Int32Array.from(lengths(shape.batch, shape.seq))),
    })
    await program.capture()
    return program
  } catch (error) {
    program.release()
    throw error
  }
}

async function measure(bench: EncoderBench, shape: Shape, programs: ReadonlyMap<string, Program>): Promise<EncoderTimes[]> {
  const samples = new Map<string, number[]>([...programs.keys()].map((plan) => [plan, []]))
  const perRound = Math.ceil(bench.repeats / rounds)
  for (let done = 0; done < bench.repeats; done += perRound) {
    for (const [plan, program] of programs) {
      bench.signal?.throwIfAborted()
      samples.get(plan)?.push(...(await program.time(Math.min(perRound, bench.repeats - done), warmup)))
    }
  }
  const lengths = bench.lengths(shape.batch, shape.seq)
  const results: EncoderTimes[] = []
  for (const [plan, program] of programs) {
    const { steps } = program
    const total = (of: (step: (typeof steps)[number]) => number): number => steps.reduce((sum, step) => sum + of(step), 0)
    results.push({
      plan,
      ...shape,
      meanLength: lengths.reduce((sum, length) => sum + length, 0) / lengths.length,
      milliseconds: summarise(samples.get(plan) ?? []),
      kernels: steps.filter(({ kind }) => kind === 'kernel').length,
      matmuls: steps.filter(({ kind }) => kind === 'matmul').length,
      captured: program.captured,
      memory: program.memory,
      work: { bytes: total(({ bytes }) => bytes), flops: total(({ flops }) => flops) },
      profile: bench.profile ? await profileOf(program, bench.repeats) : undefined,
    })
  }
  return results
}

/** Adds the times of steps that run the same thing. */
async function profileOf(program: Program, repeats: number): Promise<StepTime[]> {
  const times = await program.profile(repeats)
  const byKernel = new Map<string, StepTime>()
  for (const [i, step] of program.steps.entries()) {
    // Matmuls have no kernel; the name of the node without its layer tells what they multiply.
    const kernel = step.kernel ?? `matmul ${step.label.replace(/^.*\//, '')}`
    const { count, milliseconds } = byKernel.get(kernel) ?? { count: 0, milliseconds: 0 }
    byKernel.set(kernel, { kernel, count: count + 1, milliseconds: milliseconds + (times[i] ?? 0) })
  }
  return [...byKernel.values()].sort((a, b) => b.milliseconds - a.milliseconds)
}
