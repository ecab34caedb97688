/**
 * A program: the steps of a model at one shape, over one planned arena. Built once for a session, plan and shape, run many
 * times; on cuda it can be captured into a device graph and is then replayed with one call.
 */
import { environmentError, usageError } from '../errors.js'
import { dtypeInfo, dtypes } from '../ir/dtype.js'
import type { ValueInfo } from './bind.js'
import type { NativeBuffer, NativeSlice, NativeStep } from './native.js'
import { planMemory } from './planner.js'
import { type FlatProgram, type FlatStep, type FlattenConfig, flatten, type StorageId } from './program_flatten.js'
import { type Session, tensorBytes } from './session.js'

export type { GraphApplication } from './application.js'

/** What a new arena is filled with: NaN in every float type, so that a read before a write shows in the result. */
const poison = 0xff

/** Everything but what the session holds. */
export type ProgramConfig = Omit<FlattenConfig, 'weights' | 'layouts' | 'manifest'> & { readonly session: Session }

export interface ProgramStep {
  readonly kind: 'kernel' | 'matmul'
  /** `layer0/queryBias` */
  readonly label: string
  /** The instance key of a kernel. */
  readonly kernel: string | undefined
  /** Bytes of all buffers the step reads and writes. A gather reads less of its table than this counts. */
  readonly bytes: number
  /** Multiplications and additions of a matmul; 0 for kernels. */
  readonly flops: number
}

export interface Program {
  readonly steps: readonly ProgramStep[]
  readonly inputs: Readonly<Record<string, ValueInfo>>
  readonly outputs: Readonly<Record<string, ValueInfo>>
  readonly memory: {
    readonly arenaBytes: number
    /** The most bytes alive at any one step. */
    readonly lowerBound: number
    readonly weightBytes: number
  }
  readonly captured: boolean
  /** Copies the inputs in, runs every step, returns the outputs. One run at a time. @throws usage `program.input` */
  run(inputs: Readonly<Record<string, Uint8Array>>): Promise<Readonly<Record<string, Uint8Array>>>
  /** Stops the run under way between two steps; it rejects with ABORTED. */
  abort(): void
  /** Records the steps into a device graph; a no-op where the device has none. */
  capture(): Promise<void>
  /** Milliseconds of each of `repeats` runs without copies, after `warmup` runs. */
  time(repeats: number, warmup: number): Promise<Float64Array>
  /** Milliseconds of each step, median of `repeats`. */
  profile(repeats: number): Promise<Float64Array>
  release(): void
}

/**
 * Flattens the graphs, plans the arena, allocates and poisons it, and hands the steps to the device.
 * @throws usage `program.*`, `bind.*`, `matmul.*` for graphs that do not fit together, environment `library.kernel` for a kernel
 * library that lacks a kernel, and what the device rejects with
 */
export async function buildProgram(config: ProgramConfig): Promise<Program> {
  const { session } = config
  const flat = flatten({ ...config, weights: session.weights, layouts: session.layouts, manifest: session.manifest })
  checkLibrary(session, flat.steps)

  const inArena = flat.storages.map((storage) => (storage.weight === undefined ? storage : { ...storage, bytes: 0 }))
  const memory = planMemory(inArena)
  const arena = session.device.allocate(Math.max(memory.bytes, 1))
  try {
    const slices = flat.storages.map((storage, i) => place(session, arena, storage.bytes, storage.weight, memory.offsets[i] ?? 0))
    await initialise(
      session,
      arena,
      Object.values(flat.inputs).flatMap(({ storage }) => slices[storage] ?? []),
    )
    return assemble(session, flat, arena, slices, memory)
  } catch (error) {
    arena.release()
    throw error
  }
}

function assemble(
  session: Session,
  flat: FlatProgram,
  arena: NativeBuffer,
  slices: readonly NativeSlice[],
  memory: { readonly bytes: number; readonly lowerBound: number },
): Program {
  const slice = (id: StorageId): NativeSlice => {
    const found = slices[id]
    if (found === undefined) throw new Error(`internal: no storage ${id}`)
    return found
  }
  const native = session.device.program(flat.steps.map((step) => nativeStep(session, step, slice)))
  const outputs = Object.entries(flat.outputs)
  const infos = (values: FlatProgram['inputs']): Record<string, ValueInfo> =>
    Object.fromEntries(Object.entries(values).map(([name, { info }]) => [name, info]))
  return {
    steps: flat.steps.map((step) => describeStep(step, slice)),
    inputs: infos(flat.inputs),
    outputs: infos(flat.outputs),
    memory: { arenaBytes: memory.bytes, lowerBound: memory.lowerBound, weightBytes: weightBytes(flat) },
    get captured() {
      return native.captured
    },
    async run(inputs) {
      const writes = Object.entries(flat.inputs).map(([name, { info, storage }]) => ({
        to: slice(storage),
        data: checkInput(name, info, inputs[name]),
      }))
      const results = await native.run(
        writes,
        outputs.map(([, { storage }]) => slice(storage)),
      )
      return Object.fromEntries(outputs.map(([name], i) => [name, results[i] ?? new Uint8Array()]))
    },
    abort: () => native.abort(),
    capture: () => native.capture(),
    time: (repeats, warmup) => native.time(repeats, warmup),
    profile: (repeats) => native.profile(repeats),
    release() {
      native.release()
      arena.release()
    },
  }
}

/** Bytes of the weights a program reads, each counted once. */
const weightBytes = ({ storages }: FlatProgram): number =>
  [...new Map(storages.flatMap(({ weight, bytes }) => (weight === undefined ? [] : [[weight, bytes] as const]))).values()].reduce(
    (sum, bytes) => sum + bytes,
    0,
  )

/** Poisons the arena and zeroes the inputs in it, so that steps captured or timed before the first run read valid indices. */
async function initialise(session: Session, arena: NativeBuffer, inputs: readonly NativeSlice[]): Promise<void> {
  const whole = { buffer: arena, offset: 0, bytes: arena.bytes }
  const program = session.device.program([
    { kind: 'fill', label: 'poison', target: whole, value: poison },
    ...inputs.map((target): NativeStep => ({ kind: 'fill', label: 'input', target, value: 0 })),
  ])
  try {
    await program.run([], [])
  } finally {
    program.release()
  }
}

function place(session: Session, arena: NativeBuffer, bytes: number, weight: string | undefined, offset: number): NativeSlice {
  if (weight === undefined) return { buffer: arena, offset, bytes }
  const tensor = session.weights.get(weight)
  if (tensor === undefined) throw new Error(`internal: no weight ${weight}`)
  return tensor.slice
}

/** Every kernel the steps need must be in the library. */
function checkLibrary({ library }: Session, steps: readonly FlatStep[]): void {
  const built = new Set(library.kernels.map((kernel) => kernel.key))
  const missing = steps.find((step) => step.kind === 'kernel' && !built.has(step.key))
  if (missing?.kind === 'kernel') {
    throw environmentError(
      'library.kernel',
      `the ${library.target} kernel library has no kernel ${missing.key}, which ${missing.label} needs`,
      {
        hint: 'run heddle build',
      },
    )
  }
}

function nativeStep(session: Session, step: FlatStep, slice: (id: StorageId) => NativeSlice): NativeStep {
  if (step.kind === 'kernel') {
    const { kind, label, key, dims, attrs } = step
    return { kind, label, library: session.library, key, buffers: step.buffers.map(slice), dims, attrs }
  }
  const [a, b, out] = step.dtypes
  return {
    kind: 'matmul',
    label: step.label,
    a: slice(step.a),
    b: slice(step.b),
    out: slice(step.out),
    dtypes: [dtypes.indexOf(a), dtypes.indexOf(b), dtypes.indexOf(out)],
    allowTf32: session.allowTf32,
    ...step.matmul,
  }
}

function describeStep(step: FlatStep, slice: (id: StorageId) => NativeSlice): ProgramStep {
  const buffers = step.kind === 'kernel' ? step.buffers : [step.a, step.b, step.out]
  return {
    kind: step.kind,
    label: step.label,
    kernel: step.kind === 'kernel' ? step.key : undefined,
    bytes: buffers.reduce((sum, id) => sum + slice(id).bytes, 0),
    flops: step.kind === 'kernel' ? 0 : 2 * step.matmul.extents.reduce((product, extent) => product * extent, 1),
  }
}

function checkInput(name: string, { dtype, shape }: ValueInfo, data: Uint8Array | undefined): Uint8Array {
  const bytes = tensorBytes(dtype, shape)
  const expected = `${dtype} [${shape.join(', ')}], ${bytes} bytes`
  if (data === undefined) throw usageError('program.input', `input ${name} is missing: expected ${expected}`)
  if (data.byteLength !== bytes) {
    throw usageError('program.input', `input ${name} has ${data.byteLength} bytes: expected ${expected}`, {
      hint: `a ${dtype} element takes ${dtypeInfo[dtype].bytes} bytes`,
    })
  }
  return data
}
