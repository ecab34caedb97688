/**
 * Rows of texts on a device: their caches and decoding states, the programs that read prompts into them, and the program of a few steps
 * that runs repeatedly. Made once per shape and reused for successive batches.
 */
import { layouts } from '../../../specs/index.js'
import { type DType, dtypeInfo } from '../../ir/dtype.js'
import { abortable } from '../../runtime/abortable.js'
import { decode, type HostArrays } from '../../runtime/buffer.js'
import type { Program } from '../../runtime/program.js'
import { stateDecls } from '../../runtime/program_wiring.js'
import { openStates, type States } from '../../runtime/states.js'
import { candidateDims, type StateValues } from '../decoding/decoding_states.js'
import { type Generation, mostCandidates } from '../decoding/generation_options.js'
import { forcedEnds } from '../decoding/logit_changes.js'
import type { Advanced, Stepped } from './ahead.js'
import { buildOver, type PassRequest, passReader, type ReaderConfig } from './pass_reader.js'
import type { Run, Unread } from './passes.js'
import { assembleSteps, modelDims } from './programs.js'
import { type RowsShape, wordParts } from './shapes.js'
import { startStates } from './start.js'

export interface RowsConfig extends ReaderConfig {
  readonly generation: Generation
}

export interface Rows extends Stepped {
  readonly shape: RowsShape
  /** Device memory of the states. */
  readonly stateBytes: number
  /** Device memory of temporaries of a run: of steps, and of the largest pass so far. */
  readonly arenaBytes: number
  /** The program of the steps, for inspection and timing. */
  readonly steps: Program
  /** Splits unread tokens into passes of at most `most` tokens, or of the shape's fixed size. */
  passes(unread: readonly Unread[], most: number): Iterable<readonly Run[]>
  /** Reads tokens into the caches. @throws the signal's reason when it aborts, between two passes at the latest */
  read(unread: readonly Unread[], most: number, signal?: AbortSignal): Promise<void>
  /** The program that reads a pass, for inspection, and for timing after `read` of the same pass. */
  reader(pass: readonly Run[], most: number): Promise<Program>
  /** Reads one pass and returns the requested outputs in order: logits or one loss per token. */
  ask(pass: readonly Run[], request: PassRequest, signal?: AbortSignal): Promise<Float32Array>
  /** Writes the states that steps continue from. */
  write(values: StateValues): Promise<void>
  /** Waits for the runs of steps in progress, whether they succeed or fail. */
  idle(): Promise<void>
  /** Reads a state's current contents. */
  state(name: string): Promise<HostArrays[DType]>
  release(): void
}

/** @throws environment `states.memory` and what the device rejects with; usage `plan.model` and what building a program throws */
export async function openRows(made: RowsConfig): Promise<Rows> {
  const { session, config, plan, generation, shape, dtype } = made
  const decoder = assembleSteps(config, plan, generation, shape.perRun, shape.ropeRange)
  const sizes = stepDims(made)
  const states = await openStates({ device: session.device, layouts }, stateDecls(decoder.compiled, sizes, { T: dtype }))
  const steps = await buildOver({ session, dtype, states }, decoder, sizes).catch((error: unknown) => {
    states.release()
    throw error
  })
  const reader = passReader(made, states)
  const runs = stepRuns(steps, states, shape)
  if (session.device.info().kind === 'cuda') {
    // Steps run once before capture, so every state they index with must already be written.
    await states.writeAll(idle(made))
    await steps.capture()
  }
  return {
    shape,
    stateBytes: states.bytes,
    get arenaBytes() {
      return steps.memory.arenaBytes + reader.arenaBytes
    },
    steps,
    passes: reader.passes,
    async read(unread, most, signal) {
      for (const pass of reader.passes(unread, most)) {
        signal?.throwIfAborted()
        await reader.run(pass, most, undefined, signal)
      }
    },
    reader: reader.program,
    async ask(pass, request, signal) {
      const tokens = pass.reduce((sum, { ids }) => sum + ids.length, 0)
      const results = Object.values(await reader.run(pass, tokens, request, signal))
      const [result] = results
      if (result === undefined) throw new Error('internal: a pass gave nothing')
      const values = decode('f32', result)
      const each = request.targets === undefined ? config.vocab : 1
      return values.subarray(0, request.wanted.length * each)
    },
    write: (values) => states.writeAll(values),
    ...{ advance: runs.advance, stop: runs.stop, idle: runs.idle },
    state: (name) => states.read(name),
    release() {
      reader.release()
      runs.release()
      states.release()
    },
  }
}

/** Runs of the program of steps, which follow each other on the device. `release` frees the program. */
function stepRuns(steps: Program, states: States, shape: RowsShape): Pick<Rows, 'advance' | 'stop' | 'idle' | 'release'> {
  let released = false
  let underWay: Promise<unknown> = Promise.resolve()
  return {
    advance(step, signal) {
      const run = advanced(steps, states, shape, step, signal)
      underWay = Promise.allSettled([underWay, run])
      return run
    },
    stop() {
      if (!released) steps.abort()
    },
    async idle() {
      await underWay
    },
    release() {
      released = true
      steps.release()
    },
  }
}

/** Runs the steps that begin with `step`, and reads their tokens, losses and finished flags. */
async function advanced(
  steps: Program,
  { tensors }: States,
  shape: RowsShape,
  step: number,
  signal: AbortSignal | undefined,
): Promise<Advanced> {
  const { finished, history, losses } = tensors
  if (finished === undefined || history === undefined) throw new Error('internal: steps without a history')
  // Tokens and losses have equal sizes.
  const row = shape.rows * dtypeInfo.i32.bytes
  const ofRun = <S extends { readonly offset: number }>(slice: S) => ({
    ...slice,
    offset: slice.offset + step * row,
    bytes: shape.perRun * row,
  })
  const wanted = [finished.slice, ofRun(history.slice), ...(losses === undefined ? [] : [ofRun(losses.slice)])]
  const [flags, chosen, lost] = await abortable(steps, signal, () => steps.runAhead(wanted))
  return {
    ended: decode('i32', flags ?? new Uint8Array()).every((flag) => flag !== 0),
    words: decode('i32', chosen ?? new Uint8Array()),
    ...(lost === undefined ? {} : { losses: decode('f32', lost) }),
  }
}

/** Extents of the dimensions of steps. Parts of a row of logits depend on the vocabulary alone; otherwise sums would depend on the batch. */
function stepDims({ config, generation, shape }: RowsConfig) {
  const { choice } = generation
  const { p: q = wordParts(config.vocab), k = mostCandidates } = candidateDims(choice, config.vocab, shape.ends)
  return {
    ...modelDims(config),
    ...(choice.kind === 'beams' ? { b: shape.rows / shape.width, w: shape.width } : { r: shape.rows }),
    ...{ u: shape.capacity, s: shape.steps, f: shape.ends, q },
    ...(choice.kind !== 'greedy' && { k }),
    ...(config.banned.length > 0 && { x: config.banned.length }),
    ...(forcedEnds(generation) > 0 && { y: forcedEnds(generation) }),
  }
}

/** States of rows that have ended, at the first position. */
function idle({ config, generation, shape }: RowsConfig): StateValues {
  const prompts = Array.from({ length: shape.rows / shape.width }, () => [0])
  const cases = prompts.map((_, row) => row)
  return startStates(config, generation, shape, { prompts, cases })
}
