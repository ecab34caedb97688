/**
 * Times the forms of a subject at one size, interleaved and in alternating order. Replays copy nothing and are captured if the device supports it.
 * They rotate over enough copies of their data that no cache holds it from one replay to the next.
 */
import type { Manifest } from '../../emit/manifest/manifest.js'
import { usageError } from '../../errors.js'
import { type DType, dtypeInfo, isFloat8 } from '../../ir/dtype.js'
import { dimsIn } from '../../ir/shape.js'
import type { Layouts } from '../../runtime/layouts.js'
import type { KernelSource } from '../../runtime/library.js'
import type { NativeDevice } from '../../runtime/native.js'
import type { Program } from '../../runtime/program.js'
import { type Arithmetic, type Ceilings, type Floor, floorOf } from '../floor.js'
import type { StepTime } from '../result.js'
import { cacheOf, type Rotation, rotationOf } from '../rotation.js'
import { type Summary, summarise } from '../statistics.js'
import { stepTimes } from '../step_times.js'
import { targetProgram } from './graph_steps.js'
import { readyProgram } from './program_steps.js'
import { readyChain } from './ready_chain.js'
import type { Form, ProgramForm, Subject } from './subject.js'

export interface TargetBench {
  readonly device: NativeDevice
  readonly library: KernelSource
  readonly manifest: Manifest
  readonly layouts: Layouts
  readonly ceilings: Ceilings | undefined
  readonly dtype: DType
  readonly repeats: number
  readonly signal?: AbortSignal | undefined
  readonly onStage?: ((stage: string) => void) | undefined
}

export interface TargetTimes {
  readonly plan: string
  readonly dims: Readonly<Record<string, number>>
  /** Milliseconds per pass of every timed replay. */
  readonly samples: readonly number[]
  readonly milliseconds: Summary
  readonly launches: number
  readonly captured: boolean
  readonly rotation: Rotation
  /** Minimal bytes and arithmetic of any form of the subject. */
  readonly workload: { readonly bytes: number; readonly flops: number | undefined }
  /** Undefined if the limits of the device are unknown. */
  readonly floor: Floor | undefined
  readonly fraction: number | undefined
  /** Predicted milliseconds, if there is a cost model. */
  readonly predicted?: number | undefined
  /** Prediction for another device, for times measured on one whose ranking of plans does not transfer. */
  readonly elsewhere?: { readonly device: string; readonly milliseconds: number } | undefined
  /** Integer tensors filled with zeros, because no fact states their range. */
  readonly zeros: readonly string[]
  /** Time by kernel, the longest first. */
  readonly profile: readonly StepTime[]
}

const rounds = 5
const warmup = 3

type Dims = Readonly<Record<string, number>>

interface Ready {
  readonly plan: string
  /** Bytes of inputs, weights and outputs, each counted once. */
  readonly bytes: number
  readonly zeros: readonly string[]
  /** True if it updates inputs in place. */
  readonly updates: boolean
  readonly rotation: Rotation
  readonly program: Program
  readonly samples: number[]
  release(): void
}

/**
 * @param moved bytes that each plan moves by the cost model: fewer than those of all inputs and outputs where kernels replace some places of an input
 * @throws usage `graph.dim`, `bench.shape`, `bind.*`; environment for a lack of memory or a kernel that cannot be built
 */
export async function measure(
  bench: TargetBench,
  subject: Subject,
  given: Readonly<Record<string, number>>,
  moved: readonly number[] = [],
): Promise<TargetTimes[]> {
  const dims = completed(subject, given)
  const ready: Ready[] = []
  try {
    await timeInRounds(bench, subject, dims, ready)
    const bytes = Math.min(...ready.map((each) => each.bytes), ...(ready.some(({ updates }) => updates) ? moved : []))
    const results: TargetTimes[] = []
    for (const each of ready) results.push(await describe(bench, subject, dims, each, bytes))
    return results
  } finally {
    for (const { release } of ready) release()
  }
}

/** Milliseconds per pass of every timed replay of each form, interleaved. @throws as `measure` */
export async function samplesOf(
  bench: TargetBench,
  subject: Subject,
  given: Readonly<Record<string, number>>,
): Promise<readonly (readonly number[])[]> {
  const ready: Ready[] = []
  try {
    await timeInRounds(bench, subject, completed(subject, given), ready)
    return ready.map(({ samples }) => samples)
  } finally {
    for (const { release } of ready) release()
  }
}

/** Builds all forms into `ready`, for the caller to release, and times them in alternating order. */
async function timeInRounds(bench: TargetBench, { forms }: Subject, dims: Dims, ready: Ready[]): Promise<void> {
  const { onStage, repeats, signal } = bench
  for (const form of forms) {
    onStage?.(`building ${form.plan}`)
    ready.push('graph' in form ? await prepare(bench, form, dims) : await prepareProgram(bench, form, dims))
  }
  const perRound = Math.ceil(repeats / rounds)
  for (let round = 0; round * perRound < repeats; round++) {
    onStage?.(`timing, round ${round + 1} of ${Math.ceil(repeats / perRound)}`)
    for (const { program, samples, rotation } of round % 2 === 0 ? ready : ready.toReversed()) {
      signal?.throwIfAborted()
      const times = await program.time(Math.min(perRound, repeats - round * perRound), warmup)
      samples.push(...times.map((milliseconds) => milliseconds / rotation.passes))
    }
  }
}

/** All dimensions: given ones, defaults of the subject, and packed rows for full sequences. */
export function completed({ name, forms, typical }: Subject, given: Readonly<Record<string, number>>): Record<string, number> {
  const dims: Record<string, number> = { ...typical, ...given }
  for (const form of forms) {
    const { packing } = 'graph' in form ? form.graph : {}
    const [tokens, batch, seq] = [packing?.tokens, packing?.batch, packing?.seq].map((extent) => extent?.dims[0])
    if (tokens === undefined || dims[tokens] !== undefined || batch === undefined || seq === undefined) continue
    const [sequences, places] = [dims[batch], dims[seq]]
    if (sequences !== undefined && places !== undefined) dims[tokens] = sequences * places
  }
  const needed = new Set(
    forms.flatMap((form) => dimsIn(('graph' in form ? form.graph : form.inlined).values.flatMap(({ shape }) => shape))),
  )
  const missing = [...needed].filter((dim) => dims[dim] === undefined)
  const unknown = Object.keys(given).find((dim) => !needed.has(dim))
  if (unknown !== undefined) {
    throw usageError('bench.shape', `${name} has no dimension ${unknown}`, { hint: `dimensions are ${[...needed].join(', ')}` })
  }
  if (missing.length > 0) {
    throw usageError('graph.dim', `${name} has no usual size of ${missing.join(', ')}`, {
      hint: `give it: --shape ${missing.map((dim) => `${dim}=512`).join(',')}`,
    })
  }
  return dims
}

async function prepare(bench: TargetBench, form: Form, dims: Readonly<Record<string, number>>): Promise<Ready> {
  const { device, manifest, layouts, dtype } = bench
  const target = targetProgram(form.graph, { dims, dtype }, manifest, layouts)
  const tensorBytes = Object.values(target.tensors).reduce((sum, { data }) => sum + data.byteLength, 0)
  const rotation = rotationOf(Math.max(tensorBytes, 1), cacheOf(device.info()))
  const { passes } = rotation
  const { program, release } = await readyChain(bench, { target, passes, dims })
  const { bytes, zeros } = target
  const updates = Object.keys(target.next).length > 0
  return { plan: form.plan, bytes, zeros, updates, rotation, program, samples: [], release }
}

/** A whole program, without rotation: its weights are read once per pass. */
async function prepareProgram(bench: TargetBench, form: ProgramForm, dims: Readonly<Record<string, number>>): Promise<Ready> {
  const { program, bytes, zeros, release } = await readyProgram(bench, form, dims)
  const cache = cacheOf(bench.device.info())
  const rotation = { passes: 1, bytes, evicts: cache === undefined ? undefined : bytes >= 2 * cache }
  return { plan: form.plan, bytes, zeros, updates: false, rotation, program, samples: [], release }
}

const isArithmetic = (dtype: DType): dtype is Arithmetic => dtypeInfo[dtype].scalar === 'f32' && !isFloat8(dtype)

async function describe(
  { ceilings, dtype, repeats, onStage }: TargetBench,
  { flops: arithmetic }: Subject,
  dims: Readonly<Record<string, number>>,
  { plan, zeros, rotation, program, samples }: Ready,
  bytes: number,
): Promise<TargetTimes> {
  onStage?.(`profiling ${plan}`)
  const profile = stepTimes(program, await program.profile(Math.min(repeats, 10)), rotation.passes)
  const flops = arithmetic(dims)
  const milliseconds = summarise(samples)
  const floor =
    ceilings === undefined ? undefined : floorOf({ flops: flops ?? 0, bytes }, ceilings, isArithmetic(dtype) ? dtype : 'f32')
  return {
    plan,
    dims,
    samples,
    milliseconds,
    launches: program.steps.length / rotation.passes,
    captured: program.captured,
    rotation,
    workload: { bytes, flops },
    floor,
    fraction: floor === undefined ? undefined : floor.milliseconds / milliseconds.median,
    zeros,
    profile,
  }
}
