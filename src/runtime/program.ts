/**
 * A program: the steps of a model at one shape, over one planned arena. Built once for a session, plan and shape, run many
 * times; on cuda it can be captured into a device graph and is then replayed with one call.
 */
import { usageError } from '../errors.js'
import { bindingOf, keysAtAnyRows, type ValueInfo } from './bind.js'
import type { NativeBuffer, NativeSlice, NativeStep } from './native.js'
import { planMemory } from './planner.js'
import { unwritten } from './poison.js'
import { checkConstants } from './program_constants.js'
import { type FlatProgram, type FlattenConfig, flatten } from './program_flatten.js'
import type { Storage, StorageId } from './program_memory.js'
import { describeStep, ensureKernels, nativeStep, type ProgramStep } from './program_native.js'
import { type RunOptions, runProgram } from './program_run.js'
import type { ProgramStates } from './program_states.js'
import { contextOf, type Session, type SessionContext } from './session.js'
import type { SharedArena } from './shared_arena.js'

export type { GraphApplication } from './application.js'
export type { ProgramState, ProgramStates } from './program_states.js'

/** Flattening options, without those of the session. */
export type ProgramConfig = Omit<FlattenConfig, SessionContext> & {
  readonly session: Session
  /** Memory for values that live during one run only, shared with programs that never run at the same time. Undefined: an arena of its own. */
  readonly arena?: SharedArena | undefined
  /**
   * Weights and inputs that count as written by the launch in front of each, by name: kernels wait before they read them. For a part of a larger
   * program that is timed alone.
   */
  readonly changing?: ReadonlySet<string>
}

export interface Program {
  readonly steps: readonly ProgramStep[]
  readonly inputs: Readonly<Record<string, ValueInfo>>
  readonly outputs: Readonly<Record<string, ValueInfo>>
  readonly memory: {
    readonly arenaBytes: number
    /** Peak of the bytes alive at any one step. */
    readonly lowerBound: number
    readonly weightBytes: number
    /** Memory of the states, which the program does not own. */
    readonly stateBytes: number
  }
  readonly captured: boolean
  /**
   * Copies the inputs in, from the host or from device memory, runs every step, and returns the outputs that are not copied to device memory.
   * One run at a time. @throws usage `program.input`, `program.repeats`
   */
  run(
    inputs: Readonly<Record<string, Uint8Array | NativeSlice>>,
    options?: RunOptions,
  ): Promise<Readonly<Record<string, Uint8Array>>>
  /**
   * Runs the steps once, after the runs requested before: the device continues with the next run while the host inspects the results of this
   * one. For programs whose inputs are states alone. Returns the contents of slices of device memory at the end of the run.
   * @throws usage `program.input` if there are inputs
   */
  runAhead(reads: readonly NativeSlice[]): Promise<readonly Uint8Array[]>
  /** Number of `runAhead` runs so far, and of those submitted while the previous one was still running. */
  readonly begun: { readonly runs: number; readonly ahead: number }
  /**
   * Ends every run that was requested and has not finished, between two steps; they reject with ABORTED. States may then hold values of any of their
   * steps.
   */
  abort(): void
  /**
   * Records the steps into a device graph; a no-op where the device has none. Steps that have never run are run once first. States that they
   * read must be written before, and advance, so they have to be written again afterwards.
   */
  capture(): Promise<void>
  /** Milliseconds of each of `repeats` runs without copies, after `warmup` runs. Each run advances the states. */
  time(repeats: number, warmup: number): Promise<Float64Array>
  /** Milliseconds of each step, median of `repeats`. Each run advances the states. */
  profile(repeats: number): Promise<Float64Array>
  release(): void
}

/**
 * Flattens the graphs, plans the arena, allocates and poisons it, and hands the steps to the device.
 * @throws usage `program.*`, `bind.*`, `matmul.*` for graphs that do not fit together, environment `library.kernel` for a kernel
 * that does not exist and cannot be compiled, and errors of the device
 */
export async function buildProgram(config: ProgramConfig): Promise<Program> {
  const { session } = config
  const flat = flatten({ ...config, ...contextOf(session) })
  await ensureKernels(session, flat.steps)
  const bound = { dims: config.dims, types: config.types }
  for (const each of config.applications.filter(({ graph }) => graph.byRows !== undefined))
    session.library.elsewhere?.(keysAtAnyRows(each.graph, bindingOf(each, bound), session.manifest))

  const inArena = flat.storages.map((storage) => (isInArena(storage) ? storage : { ...storage, bytes: 0 }))
  const memory = planMemory(inArena)
  const bytes = Math.max(memory.bytes, 1)
  const arena = (await config.arena?.take(bytes)) ?? session.device.allocate(bytes)
  /** A shared arena is freed by its owner. */
  const free = (): void => {
    if (config.arena === undefined) arena.release()
  }
  try {
    const home = { session, states: config.states ?? {}, arena }
    const slices = flat.storages.map((storage, i) => place(home, storage, memory.offsets[i] ?? 0))
    await initialise(
      session,
      arena,
      Object.values(flat.inputs).flatMap(({ storage }) => slices[storage] ?? []),
    )
    return assemble(config, flat, slices, memory, free)
  } catch (error) {
    free()
    throw error
  }
}

function assemble(
  { session, changing = new Set() }: ProgramConfig,
  flat: FlatProgram,
  slices: readonly NativeSlice[],
  memory: { readonly bytes: number; readonly lowerBound: number },
  free: () => void,
): Program {
  const slice = (id: StorageId): NativeSlice => {
    const found = slices[id]
    if (found === undefined) throw new Error(`internal: no storage ${id}`)
    return found
  }
  checkConstants(flat.steps, session.manifest, slice)
  const inputs = new Map(Object.entries(flat.inputs).map(([name, { storage }]) => [storage, name]))
  const isChanging = (id: StorageId): boolean =>
    changing.has(flat.storages[id]?.weight ?? flat.storages[id]?.state ?? inputs.get(id) ?? '')
  const native = session.device.program(flat.steps.map((step) => nativeStep(session, step, slice, isChanging)))
  const assembled = { device: session.device, native, flat, slice }
  return {
    steps: flat.steps.map((step) => describeStep(step, slice)),
    inputs: infosOf(flat.inputs),
    outputs: infosOf(flat.outputs),
    memory: {
      arenaBytes: memory.bytes,
      lowerBound: memory.lowerBound,
      weightBytes: distinctBytes(flat, 'weight'),
      stateBytes: distinctBytes(flat, 'state'),
    },
    get captured() {
      return native.captured
    },
    run: (inputs, options) => runProgram(assembled, inputs, options),
    async runAhead(reads) {
      const [input] = Object.keys(flat.inputs)
      if (input !== undefined) {
        throw usageError('program.input', `a run ahead takes no inputs, but the program has ${input}`, {
          hint: 'use run, or make it a state',
        })
      }
      return native.runAhead(reads)
    },
    get begun() {
      return { runs: native.begun, ahead: native.begunAhead }
    },
    abort: () => native.abort(),
    capture: () => native.capture(),
    time: (repeats, warmup) => native.time(repeats, warmup),
    profile: (repeats) => native.profile(repeats),
    release() {
      native.release()
      free()
    },
  }
}

const infosOf = (values: FlatProgram['inputs']): Record<string, ValueInfo> =>
  Object.fromEntries(Object.entries(values).map(([name, { info }]) => [name, info]))

/** Total bytes of the weights or states a program uses, each counted once. */
function distinctBytes({ storages }: FlatProgram, kind: 'weight' | 'state'): number {
  const bytes = new Map(storages.flatMap((storage) => (storage[kind] === undefined ? [] : [[storage[kind], storage.bytes]])))
  return [...bytes.values()].reduce((sum, each) => sum + each, 0)
}

/** Poisons the arena and zeroes the inputs in it, so that steps captured or timed before the first run read valid indices. */
async function initialise(session: Session, arena: NativeBuffer, inputs: readonly NativeSlice[]): Promise<void> {
  const whole = { buffer: arena, offset: 0, bytes: arena.bytes }
  const program = session.device.program([
    { kind: 'fill', label: 'poison', target: whole, value: unwritten },
    ...inputs.map((target): NativeStep => ({ kind: 'fill', label: 'input', target, value: 0 })),
  ])
  try {
    await program.run([], [])
  } finally {
    program.release()
  }
}

const isInArena = ({ weight, state }: Storage): boolean => weight === undefined && state === undefined

/** Memory of a program's values. */
interface Home {
  readonly session: Session
  readonly states: ProgramStates
  readonly arena: NativeBuffer
}

function place({ session, states, arena }: Home, { bytes, weight, state }: Storage, offset: number): NativeSlice {
  if (weight === undefined && state === undefined) return { buffer: arena, offset, bytes }
  const tensor = state === undefined ? session.weights.get(weight ?? '') : states[state]?.tensor
  if (tensor === undefined) throw new Error(`internal: no weight or state ${weight ?? state}`)
  return tensor.slice
}
