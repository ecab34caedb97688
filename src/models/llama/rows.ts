/**
 * Rows of texts on a device: their caches and decoding states, the programs that read prompts into them, and the program of a few steps
 * that runs repeatedly. Made once per shape and reused for successive batches.
 */
import { layouts } from '../../../specs/index.js'
import type { FloatType } from '../../checkpoint/convert.js'
import { type DType, dtypeInfo } from '../../ir/dtype.js'
import type { ModelPlan } from '../../program/index.js'
import { abortable } from '../../runtime/abortable.js'
import { decode, type HostArrays } from '../../runtime/buffer.js'
import { buildProgram, type Program } from '../../runtime/program.js'
import { stateDecls } from '../../runtime/program_wiring.js'
import type { Session } from '../../runtime/session.js'
import { type SharedArena, sharedArena } from '../../runtime/shared_arena.js'
import { openStates } from '../../runtime/states.js'
import { candidateDims, type StateValues } from '../decoding/decoding_states.js'
import { type Generation, mostCandidates } from '../decoding/generation_options.js'
import { forcedEnds } from '../decoding/logit_changes.js'
import { type Assembly, statesOf } from '../parts/assembly.js'
import { releasingCache } from '../parts/lru_cache.js'
import type { Advanced, Stepped } from './ahead.js'
import type { LlamaConfig } from './config.js'
import { fixedPasses, inputsOf, type PassShape, passesOf, passInputs, passShape, type Run, type Unread } from './passes.js'
import { assemblePrompt, assembleSteps, type Given, modelDims } from './programs.js'
import { type RowsShape, wordParts } from './shapes.js'
import { startStates } from './start.js'

export interface RowsConfig {
  readonly session: Session
  readonly config: LlamaConfig
  readonly plan: ModelPlan
  readonly generation: Generation
  readonly shape: RowsShape
  readonly dtype: FloatType
}

/** Requested outputs of a pass, besides filling the caches. */
export interface PassRequest {
  /** Tokens to return outputs of, by index in the pass. */
  readonly wanted: readonly number[]
  /** Ids whose likelihood after each wanted token is requested; logits if undefined. */
  readonly targets?: readonly number[]
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

/** Number of cached programs over passes of different shapes. */
const cachedPasses = 48

/** @throws environment `states.memory` and what the device rejects with; usage `plan.model` and what building a program throws */
export async function openRows(made: RowsConfig): Promise<Rows> {
  const { session, config, plan, generation, shape, dtype } = made
  const decoder = assembleSteps(config, plan, generation, shape.perRun, shape.ropeRange)
  const sizes = stepDims(made)
  const states = await openStates({ device: session.device, layouts }, stateDecls(decoder.compiled, sizes, { T: dtype }))
  const build = (assembly: Assembly, dims: Readonly<Record<string, number>>, arena?: SharedArena): Promise<Program> =>
    buildProgram({ session, ...assembly.wired, states: statesOf(assembly, states), dims, types: { T: dtype }, arena })
  const steps = await build(decoder, sizes).catch((error: unknown) => {
    states.release()
    throw error
  })
  const programs = releasingCache<Program>(cachedPasses)
  const arena = sharedArena(session.device)
  const assemblies = new Map<Given, Assembly>()
  const assemblyOf = (gives: Given): Assembly => {
    const made = assemblies.get(gives) ?? assemblePrompt(config, plan, gives, shape.ropeRange)
    assemblies.set(gives, made)
    return made
  }
  const programFor = (pass: PassShape, gives: Given, wanted: number): Promise<Program> => {
    const key = JSON.stringify([pass, gives, wanted])
    return programs.get(key, () =>
      build(
        assemblyOf(gives),
        {
          ...modelDims(config),
          ...{ r: shape.rows, u: shape.capacity, t: pass.tokens, b: pass.sequences, s: pass.longest, k: wanted },
        },
        arena.for(() => programs.clear(key)),
      ),
    )
  }
  const extentsOf = (pass: readonly Run[], most: number): PassShape =>
    shape.pass === undefined ? passShape(pass, most) : { tokens: shape.pass, sequences: 1, longest: shape.pass }
  async function run(pass: readonly Run[], most: number, request: PassRequest | undefined, signal: AbortSignal | undefined) {
    const fixed = shape.pass
    const extents = extentsOf(pass, most)
    const gives = request === undefined ? 'nothing' : request.targets === undefined ? 'logits' : 'losses'
    const count = fixed === undefined || request === undefined ? 2 ** Math.ceil(Math.log2(request?.wanted.length ?? 1)) : fixed
    const program = await programFor(extents, gives, count)
    const padded = (values: readonly number[] = []): Int32Array => Int32Array.from({ length: count }, (_, i) => values[i] ?? 0)
    const given = { ...passInputs(pass, extents, shape.rows), wanted: padded(request?.wanted), targets: padded(request?.targets) }
    return abortable(program, signal, () => program.run(inputsOf(program, given)))
  }
  let released = false
  let underWay: Promise<unknown> = Promise.resolve()
  async function advanced(step: number, signal: AbortSignal | undefined): Promise<Advanced> {
    const { finished, history, losses } = states.tensors
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
  const passes = (unread: readonly Unread[], most: number): Iterable<readonly Run[]> =>
    shape.pass === undefined ? passesOf(unread, most) : fixedPasses(unread, shape.pass)
  if (session.device.info().kind === 'cuda') {
    // Steps run once before capture, so every state they index with must already be written.
    await states.writeAll(idle(made))
    await steps.capture()
  }
  return {
    shape,
    stateBytes: states.bytes,
    get arenaBytes() {
      return steps.memory.arenaBytes + arena.bytes
    },
    steps,
    passes,
    async read(unread, most, signal) {
      for (const pass of passes(unread, most)) {
        signal?.throwIfAborted()
        await run(pass, most, undefined, signal)
      }
    },
    reader: (pass, most) => programFor(extentsOf(pass, most), 'nothing', 1),
    async ask(pass, request, signal) {
      const tokens = pass.reduce((sum, { ids }) => sum + ids.length, 0)
      const results = Object.values(await run(pass, tokens, request, signal))
      const [result] = results
      if (result === undefined) throw new Error('internal: a pass gave nothing')
      const values = decode('f32', result)
      const each = request.targets === undefined ? config.vocab : 1
      return values.subarray(0, request.wanted.length * each)
    },
    write: (values) => states.writeAll(values),
    advance(step, signal) {
      const run = advanced(step, signal)
      underWay = Promise.allSettled([underWay, run])
      return run
    },
    stop() {
      if (!released) steps.abort()
    },
    async idle() {
      await underWay
    },
    state: (name) => states.read(name),
    release() {
      released = true
      void programs.clear()
      arena.release()
      steps.release()
      states.release()
    },
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
