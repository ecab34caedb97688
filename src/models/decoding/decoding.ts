/**
 * A batch being decoded: the states it keeps on the device, the program that reads the sources into them, and the program of some steps
 * that is run again and again. Made once for a shape and used for one batch after the other.
 */
import { layouts } from '../../../specs/index.js'
import type { FloatType } from '../../checkpoint/convert.js'
import type { DType } from '../../ir/dtype.js'
import type { ModelPlan } from '../../program/index.js'
import { abortable } from '../../runtime/abortable.js'
import type { HostArrays } from '../../runtime/buffer.js'
import { buildProgram, type Program, type ProgramConfig } from '../../runtime/program.js'
import { isPacked, stateDecls } from '../../runtime/program_wiring.js'
import type { Session } from '../../runtime/session.js'
import { openStates } from '../../runtime/states.js'
import { type Assembly, statesOf } from '../parts/assembly.js'
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
  /** The encoder under the plan. */
  readonly encoder: Assembly
  /** True if logits have a bias. */
  readonly headBias: boolean
  readonly generation: Generation
  readonly shape: DecodingShape
  readonly dtype: FloatType
  /** Steps of one run of the program; the capacity is a multiple of them. */
  readonly stepsPerRun: number
}

/** Token ids of the sources, and what decoding starts with. */
export interface DecodingBatch extends Pick<DecodingStart, 'cases'> {
  readonly sources: readonly (readonly number[])[]
  /** Of the same form as the one decoding was opened for, which it is by default. */
  readonly generation?: Generation
}

export interface Decoding {
  readonly shape: DecodingShape
  readonly stepsPerRun: number
  /** Device memory of the states. */
  readonly stateBytes: number
  /** The program of the steps, for inspection and timing. */
  readonly steps: Program
  /** Asks the device to read the sources. Whatever was decoded before is forgotten; what goes wrong shows in `advance`. */
  start(batch: DecodingBatch, signal?: AbortSignal): void
  /** Runs the program `runs` times once the sources are read, and says whether every text has ended. */
  advance(runs: number, signal?: AbortSignal): Promise<boolean>
  /** What a state holds now. */
  read(state: string): Promise<HostArrays[DType]>
  /**
   * Holds a batch that has been decoded to having been computed of numbers: where logits are none, the word that is chosen says nothing.
   * What a layer keeps for later steps has a trace of every step before it, so that the last layer's is enough to look at.
   * @param first number of the batch's first case, for the message
   * @throws finding `run.value`; then the states must not be used again
   */
  expectNumbers(first: number): Promise<void>
  release(): void
}

/** @throws environment `states.memory` and what the device rejects with; usage `plan.model` and what programs are refused for */
export async function openDecoding(made: DecodingConfig): Promise<Decoding> {
  const { session, config, plan, headBias, generation, shape, dtype, stepsPerRun } = made
  const decoder = assembleDecoder(config, headBias, plan, generation, stepsPerRun)
  const sizes = decodingDims(config, generation, shape)
  const decls = stateDecls(decoder.compiled, sizes, { T: dtype })
  const states = await openStates({ device: session.device, layouts }, decls)
  // States that must hold numbers from the start are those that a layer keeps: as many for each, in order.
  const kept = Object.keys(decls).filter((name) => decls[name]?.cleared === true)
  const lastKept = kept.slice(kept.length - kept.length / config.decoder.layers)
  const packed = isPacked(made.encoder.compiled, 'ids')
  const place = { seq: shape.source, rows: shape.batch * shape.source, packed, filler: config.padToken }
  const programs: Program[] = []
  const release = (): void => {
    for (const program of programs) program.release()
    states.release()
  }
  const build = async (
    assembly: Assembly,
    sized: Pick<ProgramConfig, 'dims'> & Partial<Pick<ProgramConfig, 'outputs'>>,
  ): Promise<Program> => {
    const held = { session, states: statesOf(assembly, states), types: { T: dtype } }
    const program = await buildProgram({ ...assembly.wired, ...held, ...sized })
    programs.push(program)
    return program
  }
  try {
    // What decoder layers attend to, the encoder leaves in their states.
    const sourceDims = seq2seqEncoderDims(config, { batch: shape.batch, seq: shape.source })
    const encoder = await build(made.encoder, { dims: sourceDims, outputs: [] })
    const steps = await build(decoder, { dims: sizes })
    const begin = ({ sources, cases, generation: asked = generation }: DecodingBatch, signal?: AbortSignal) => {
      const lengths = sources.map(({ length }) => length)
      const start = { startToken: config.startToken, endTokens: config.endTokens, lengths, cases }
      return settled([
        states.writeAll(initialStates(config, asked, shape, start)),
        abortable(encoder, signal, () => encoder.run(idInputs(sources, place))),
      ])
    }
    if (session.device.info().kind === 'cuda') {
      // Steps run once before they are recorded, and nothing they look up may come from a state that was never written.
      const cases = Array.from({ length: shape.batch }, (_, i) => i)
      await begin({ cases, sources: cases.map(() => [config.startToken]) })
      await encoder.capture()
      await steps.capture()
    }
    let started: Promise<unknown> = Promise.resolve()
    return {
      shape,
      stepsPerRun,
      stateBytes: states.bytes,
      steps,
      start(batch, signal) {
        started = begin(batch, signal)
        // It is `advance` that throws what went wrong.
        started.catch(() => {})
      },
      async advance(runs, signal) {
        const run = abortable(steps, signal, () => steps.run({}, { repeats: runs }))
        const [, , finished] = await settled([started, run, states.read('finished')])
        return finished.every((flag) => flag !== 0)
      },
      read: (name) => states.read(name),
      async expectNumbers(first) {
        for (const name of lastKept) {
          const values = await states.read(name)
          const at = values.findIndex((value) => !Number.isFinite(value))
          if (at < 0) continue
          const index = first + Math.floor((at * shape.batch) / values.length)
          throw noNumbers(`case ${index}: ${name} holds ${values[at]}`)
        }
      },
      release,
    }
  } catch (error) {
    release()
    throw error
  }
}

/**
 * Waits for all of what the device was asked for: it does one thing after the other, so that nothing has to be waited for in between, and
 * memory is in use until the last is done. @throws what the first one that failed rejects with
 */
async function settled<const T extends readonly Promise<unknown>[]>(asked: T) {
  await Promise.allSettled(asked)
  return Promise.all(asked)
}
