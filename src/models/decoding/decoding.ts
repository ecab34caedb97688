/**
 * Decoding of a batch: its states on the device, the program that reads the sources into them, and the program of a few steps that runs
 * repeatedly. Made once per shape and reused for successive batches.
 */
import { layouts } from '../../../specs/index.js'
import type { FloatType } from '../../checkpoint/convert.js'
import type { DType } from '../../ir/dtype.js'
import type { ModelPlan } from '../../program/index.js'
import { abortable } from '../../runtime/abortable.js'
import { encode, type HostArrays } from '../../runtime/buffer.js'
import { buildProgram, type Program, type ProgramConfig } from '../../runtime/program.js'
import { isPacked, stateDecls } from '../../runtime/program_wiring.js'
import type { Session } from '../../runtime/session.js'
import { openStates, type StateDecl, type States } from '../../runtime/states.js'
import { type Assembly, statesOf } from '../parts/assembly.js'
import { batchMask, batchOrder, keptTokens, type MaskedCase } from '../parts/masks.js'
import { noNumbers } from '../parts/no_numbers.js'
import { idInputs } from '../parts/token_rows.js'
import { assembleDecoder, seq2seqEncoderDims } from '../seq2seq/programs.js'
import type { Seq2seqConfig } from '../seq2seq/seq2seq_config.js'
import { type DecodingShape, type DecodingStart, decodingDims, initialStates } from './decoding_states.js'
import type { Generation } from './generation_options.js'

export interface DecodingConfig {
  readonly session: Session
  readonly config: Seq2seqConfig
  readonly plan: ModelPlan
  /** The encoder under the plan, with an attention mask if the shape has one. */
  readonly encoder: Assembly
  /** True if logits have a bias. */
  readonly headBias: boolean
  readonly generation: Generation
  readonly shape: DecodingShape
  readonly dtype: FloatType
  /** Steps per run of the program; the capacity is a multiple of them. */
  readonly stepsPerRun: number
}

/** Token ids of the sources, and the initial state of decoding. */
export interface DecodingBatch extends Pick<DecodingStart, 'cases'> {
  readonly sources: readonly (readonly number[])[]
  /** Masks over pairs of the sources' tokens, if the shape is masked; undefined for a source without one. */
  readonly masks?: readonly (Uint8Array | undefined)[]
  /** Must have the same form as the generation that decoding was opened for, which is the default. */
  readonly generation?: Generation
}

export interface Decoding {
  readonly shape: DecodingShape
  readonly stepsPerRun: number
  /** Device memory of the states. */
  readonly stateBytes: number
  /** The program of the steps, for inspection and timing. */
  readonly steps: Program
  /** Enqueues reading the sources. Discards the previous batch. Errors are thrown by `advance`. */
  start(batch: DecodingBatch, signal?: AbortSignal): void
  /** Runs the program `runs` times after the sources are read. Returns true if every text has ended. */
  advance(runs: number, signal?: AbortSignal): Promise<boolean>
  /** Reads a state's current contents. */
  read(state: string): Promise<HostArrays[DType]>
  /**
   * Checks that a decoded batch was computed from finite numbers: otherwise the chosen tokens are meaningless. Cached keys and values
   * depend on every earlier step, so checking the last layer's is enough.
   * @param first number of the batch's first case, for the message
   * @throws finding `run.value`; then the states must not be used again
   */
  expectNumbers(first: number): Promise<void>
  release(): void
}

/** @throws environment `states.memory` and what the device rejects with; usage `plan.model` and what building a program throws */
export async function openDecoding(made: DecodingConfig): Promise<Decoding> {
  const { session, config, plan, headBias, generation, shape, dtype, stepsPerRun } = made
  const decoder = assembleDecoder(config, headBias, plan, generation, stepsPerRun)
  const sizes = decodingDims(config, generation, shape)
  const decls = stateDecls(decoder.compiled, sizes, { T: dtype })
  const states = await openStates({ device: session.device, layouts }, decls)
  const programs: Program[] = []
  const release = (): void => {
    for (const program of programs) program.release()
    states.release()
  }
  const build = async (
    assembly: Assembly,
    sized: Pick<ProgramConfig, 'dims'> & Partial<Pick<ProgramConfig, 'outputs'>>,
  ): Promise<Program> => {
    const common = { session, states: statesOf(assembly, states), types: { T: dtype } }
    const program = await buildProgram({ ...assembly.wired, ...common, ...sized })
    programs.push(program)
    return program
  }
  try {
    // The encoder writes the keys and values of cross-attention to states.
    const sourceDims = seq2seqEncoderDims(config, { batch: shape.batch, seq: shape.source })
    const encoder = await build(made.encoder, { dims: sourceDims, outputs: [] })
    const steps = await build(decoder, { dims: sizes })
    const opened: Opened = { made, states, encoder, steps }
    if (session.device.info().kind === 'cuda') await capture(opened)
    return { ...decodingOf(opened, lastCaches(decls, config.decoder.layers)), release }
  } catch (error) {
    release()
    throw error
  }
}

/** States and programs of a decoding. */
interface Opened {
  readonly made: DecodingConfig
  readonly states: States
  readonly encoder: Program
  readonly steps: Program
}

/** Caches of the last layer. Cleared states are the layers' caches: equally many per layer, in order. */
function lastCaches(decls: Readonly<Record<string, StateDecl>>, layers: number): readonly string[] {
  const caches = Object.keys(decls).filter((name) => decls[name]?.cleared === true)
  return caches.slice(caches.length - caches.length / layers)
}

/** Captures both programs. Steps run once before capture, so every state they index with must already be written. */
async function capture(opened: Opened): Promise<void> {
  const { made, encoder, steps } = opened
  const cases = Array.from({ length: made.shape.batch }, (_, i) => i)
  await begin(opened, { cases, sources: cases.map(() => [made.config.startToken]) })
  await encoder.capture()
  await steps.capture()
}

/** Enqueues writing the initial states and reading the sources of a batch. */
function begin({ made, states, encoder }: Opened, batch: DecodingBatch, signal?: AbortSignal): Promise<unknown> {
  const { config, shape } = made
  const { sources, masks = [], cases, generation = made.generation } = batch
  const packed = isPacked(made.encoder.compiled, 'ids')
  const place = { seq: shape.source, rows: shape.batch * shape.source, packed, filler: config.padToken }
  const masked = sources.map((inputIds, i) => ({ item: { inputIds }, pairs: masks[i] }))
  const lengths = masked.map((source) => keptTokens(source).length)
  const start = { startToken: config.startToken, endTokens: config.endTokens, lengths, cases }
  return settled([
    states.writeAll(initialStates(config, generation, shape, start)),
    abortable(encoder, signal, () =>
      encoder.run({ ...idInputs(sources, place), ...(shape.masked === true && maskInputs(masked, shape.source)) }),
    ),
  ])
}

/** Inputs of a masked encoder: the mask, and the order in which the decoder attends to the tokens. */
const maskInputs = (sources: readonly MaskedCase[], seq: number) => ({
  mask: batchMask(sources, seq),
  order: encode('i32', batchOrder(sources, seq)),
})

/** @param caches names of the states that `expectNumbers` checks */
function decodingOf(opened: Opened, caches: readonly string[]): Omit<Decoding, 'release'> {
  const { made, states, steps } = opened
  const { shape, stepsPerRun } = made
  let started: Promise<unknown> = Promise.resolve()
  return {
    shape,
    stepsPerRun,
    stateBytes: states.bytes,
    steps,
    start(batch, signal) {
      started = begin(opened, batch, signal)
      // `advance` throws the error.
      started.catch(() => {})
    },
    async advance(runs, signal) {
      const run = abortable(steps, signal, () => steps.run({}, { repeats: runs }))
      const [, , finished] = await settled([started, run, states.read('finished')])
      return finished.every((flag) => flag !== 0)
    },
    read: (name) => states.read(name),
    async expectNumbers(first) {
      for (const name of caches) {
        const values = await states.read(name)
        const at = values.findIndex((value) => !Number.isFinite(value))
        if (at < 0) continue
        const index = first + Math.floor((at * shape.batch) / values.length)
        throw noNumbers(`case ${index}: ${name} holds ${values[at]}`)
      }
    },
  }
}

/**
 * Waits for all enqueued work. The device runs it in order, so no wait is needed in between, and memory is in use until the last is done.
 * @throws what the first failed one rejects with
 */
async function settled<const T extends readonly Promise<unknown>[]>(pending: T) {
  await Promise.allSettled(pending)
  return Promise.all(pending)
}
