/**
 * The pipeline of a LLaMA-like model: a model folder becomes an object that continues texts and says how likely they are. Prompts of a batch
 * may have any lengths. What a batch needs on the device is made for each shape and kept while shapes recur.
 */
import { layouts } from '../../../specs/index.js'
import type { Manifest } from '../../emit/manifest.js'
import { findingError, HeddleError, usageError } from '../../errors.js'
import { defaultPlan, findPlan } from '../../program/plans.js'
import type { KernelSource } from '../../runtime/library.js'
import type { NativeDevice } from '../../runtime/native.js'
import { prepareWeights } from '../../runtime/prepare_weights.js'
import { openSession } from '../../runtime/session.js'
import { beforeEnd } from '../decoding/beam_trace.js'
import { endsOf } from '../decoding/decoding_states.js'
import { type Generation, type GenerationOptions, resolveGeneration } from '../decoding/generation_options.js'
import { type FloatType, floatTypes } from '../files/convert.js'
import { checkCases, longestOf, type TokenCase } from '../files/token_cases.js'
import { expectInt8, multipliesInt8 } from '../int8_device.js'
import { lruCache } from '../lru_cache.js'
import { turns } from '../turns.js'
import type { LlamaConfig } from './config.js'
import { openLlamaFiles } from './open_files.js'
import { heldPrefixes } from './prefix.js'
import { assemblePrompt, assembleSteps, formOf } from './programs.js'
import { openRows, type Rows, type RowsShape, startStates } from './rows.js'
import { checkPlaces, type Score, scoreRows } from './score.js'
import { llamaWeights, type Rotation, reachOf, rotations, usualRotation } from './weights.js'

export interface LlamaOptions {
  readonly device: NativeDevice
  /** The device's kernel library and the manifest of the text it was built from. */
  readonly library: KernelSource
  readonly manifest: Manifest
  /** Storage type of weights, caches and activations; f32 by default. */
  readonly dtype?: FloatType
  /** `unfused` by default. */
  readonly plan?: string
  /** Inverse frequencies of the rotation: rounded to the type of the checkpoint by default. */
  readonly rotation?: Rotation
  /** Ends loading; runs have signals of their own. */
  readonly signal?: AbortSignal | undefined
}

interface RunOptions {
  /** Cases run together. 8 by default. */
  readonly batch?: number
  /** Tokens of prompts that are read at once. 2,048 by default; 512 where likelihoods are asked for, which take logits of each. */
  readonly chunk?: number
  readonly signal?: AbortSignal | undefined
  /** Called after each batch. */
  readonly progress?: (done: number, total: number) => void
}

export interface LlamaGenerateOptions extends GenerationOptions, RunOptions {
  /** Places of the caches, where texts will grow beyond this run: the next one finds the same caches. As many as the run needs by default. */
  readonly capacity?: number
  /**
   * Whether prompts that begin as the texts of the run before, in the same rows of caches of the same shape, are read from where they
   * differ. What is read in other pieces may differ in its last bits.
   */
  readonly reuse?: boolean
  /** Told before each batch how many tokens of its prompts were found in the caches. */
  readonly reused?: (tokens: number) => void
}

export interface LlamaResult {
  /** Generated ids, without an end id. */
  readonly ids: readonly number[]
  /** What ended the text: an end id, or the limit of tokens. */
  readonly finish: 'end' | 'limit'
}

/** Tokens of a case that have just been chosen. */
export interface LlamaTokens {
  readonly index: number
  readonly ids: readonly number[]
  /** What ended the text, with its last tokens. */
  readonly finish?: LlamaResult['finish']
}

export interface ScoreOptions extends RunOptions {
  /** Places whose logits are returned too. */
  readonly places?: readonly number[]
}

export interface Llama {
  readonly config: LlamaConfig
  readonly dtype: FloatType
  readonly plan: string
  readonly rotation: Rotation
  /** Device memory of the weights. */
  readonly weightBytes: number
  /**
   * Continues cases in order. Runs of one pipeline follow each other; they never interleave, and a stream that is being read is a run.
   * @throws usage `generate.*`, `run.batch`, `run.chunk`, `run.sequence`, `run.token`, `run.capacity` before anything runs; finding `run.value`
   * where words were chosen by what is no number; environment `states.memory` and `device.memory`; the signal's reason when it aborts: what
   * the run held is freed or used again, and the next run is not affected
   */
  generate(cases: readonly TokenCase[], options?: LlamaGenerateOptions): Promise<LlamaResult[]>
  /** The same, token by token as the device chooses them. Leaving the loop early ends the run. */
  stream(cases: readonly TokenCase[], options?: LlamaGenerateOptions): AsyncGenerator<LlamaTokens, void>
  /**
   * How likely the model finds each case.
   * @throws like `generate`; usage `run.sequence` for a case of one token, `run.place` for a place that a case does not have
   */
  score(cases: readonly TokenCase[], options?: ScoreOptions): Promise<Score[]>
  /** Frees weights and everything made for shapes. */
  release(): void
}

/** Steps between two looks at what has ended. */
export const stepsPerRun = 8
/** Shapes whose states are kept. */
const keptShapes = 4
const usualBatch = 8
export const usualChunk = 2048
const usualScoredChunk = 512

/** Any program over the layers has their weights. */
const anyGeneration: Generation = { choice: { kind: 'greedy' }, repetitionPenalty: 1, maxNewTokens: 1, minNewTokens: 0 }

/**
 * Loads a LLaMA-like model: a folder, or one GGUF file.
 * @throws finding `weights.value`; usage `config.*`, `safetensors.*`, `checkpoint.*`, `weights.*`, `plan.*`, `run.dtype`; what the device rejects with
 */
export async function loadLlama(dir: string, options: LlamaOptions): Promise<Llama> {
  const { device, library, manifest, dtype = 'f32', rotation = usualRotation, signal } = options
  const plan = findPlan(options.plan ?? defaultPlan, manifest.plans)
  if (!floatTypes.includes(dtype)) {
    throw usageError('run.dtype', `unknown dtype ${JSON.stringify(dtype)}`, { hint: `known: ${floatTypes.join(', ')}` })
  }
  if (!rotations.includes(rotation)) {
    throw usageError('run.rotation', `unknown rotation ${JSON.stringify(rotation)}`, { hint: `known: ${rotations.join(', ')}` })
  }
  const { config, checkpoint } = await openLlamaFiles(dir, signal)
  const weights = llamaWeights(config, checkpoint, dtype, rotation)
  const applications = (['short', 'long'] as const)
    .filter((reach) => reach === 'short' || config.rotary.type === 'longrope')
    .flatMap((reach) => [
      ...assemblePrompt(config, plan, 'logits', reach).wired.applications,
      ...assembleSteps(config, plan, anyGeneration, 1, reach).wired.applications,
    ])
  if (multipliesInt8({ applications })) expectInt8(device.info(), plan.name)
  // Int8 weights are made of the checkpoint's numbers, which storage in half precision would round before.
  const exact = dtype === 'f32' ? weights : llamaWeights(config, checkpoint, 'f32', rotation)
  const prepared = prepareWeights(applications, weights, layouts, exact)
  const session = await openSession({ device, library, manifest, layouts, weights: prepared }, signal)

  const kept = lruCache<Promise<Rows>>(keptShapes, (evicted) =>
    evicted.then(
      (rows) => rows.release(),
      () => {},
    ),
  )
  const open = (generation: Generation, shape: RowsShape): Promise<Rows> =>
    kept.get(`${formOf(generation)} ${JSON.stringify(shape)}`, () =>
      openRows({ session, config, plan, generation, shape, dtype, stepsPerRun }),
    )
  /** Where memory is short, the shapes that were kept make room: no run uses them now. */
  const rowsFor = (generation: Generation, shape: RowsShape): Promise<Rows> =>
    open(generation, shape).catch(async (error: unknown) => {
      if (!isOutOfMemory(error)) throw error
      await kept.clear()
      return open(generation, shape)
    })
  /** What was computed of no numbers stays in the caches, so they go with it. */
  const orForget = <T>(run: Promise<T>): Promise<T> =>
    run.catch(async (error: unknown) => {
      if (error instanceof HeddleError && error.code === 'run.value') await kept.clear()
      throw error
    })

  const prefixes = heldPrefixes()
  const turn = turns()

  /** Batches of prompts, each with its first tokens cached and the first step not yet taken. */
  async function* batches(cases: readonly TokenCase[], given: LlamaGenerateOptions) {
    const { batch = usualBatch, chunk = usualChunk, signal, progress } = given
    const done = await turn()
    try {
      checkCases(config, cases, batch)
      checkChunk(chunk)
      const limits = { vocab: config.vocab, positions: config.positions, cases: cases.length, endTokens: config.eos }
      const generation = resolveGeneration(limited(config, cases, given), limits)
      formOf(generation)
      checkCapacity(config, cases, generation, given.capacity)
      for (let first = 0; first < cases.length; first += batch) {
        signal?.throwIfAborted()
        const prompts = cases.slice(first, first + batch).map(({ inputIds }) => inputIds)
        const rows = await rowsFor(generation, shapeOf(config, prompts, generation, given.capacity))
        const found = prefixes.take(rows, prompts)
        const cached = given.reuse === true ? found : found.map(() => 0)
        given.reused?.(cached.reduce((sum, tokens) => sum + tokens, 0))
        await rows.read(
          prompts
            .map((ids, row) => ({ row, first: cached[row] ?? 0, ids: ids.slice(cached[row], -1) }))
            .filter(({ ids }) => ids.length > 0),
          chunk,
          signal,
        )
        await rows.write(startStates(config, generation, rows.shape, { prompts, cases: prompts.map((_, i) => first + i) }))
        yield { rows, generation, first, prompts }
        progress?.(first + prompts.length, cases.length)
      }
    } finally {
      done()
    }
  }

  return {
    config,
    dtype,
    plan: plan.name,
    rotation,
    weightBytes: session.weightBytes,
    async generate(cases, given = {}) {
      const results: LlamaResult[] = []
      for await (const { rows, generation, first, prompts } of batches(cases, given)) {
        const { maxNewTokens } = generation
        for (let ended = false, steps = 0; !ended && steps < maxNewTokens; steps += stepsPerRun) {
          ended = await rows.advance(given.signal)
        }
        const texts = await orForget(textsOf(config, rows, maxNewTokens, first))
        prefixes.keep(rows, prompts, texts)
        for (const ids of texts) {
          const kept = beforeEnd(ids, config.eos)
          results.push({ ids: kept, finish: kept.length < ids.length ? 'end' : 'limit' })
        }
      }
      return results
    },
    async *stream(cases, given = {}) {
      for await (const { rows, generation, first, prompts } of batches(cases, given)) {
        const sent: number[] = Array.from({ length: rows.shape.rows }, () => 0)
        const { maxNewTokens } = generation
        for (let ended = false, steps = 0; !ended && steps < maxNewTokens; steps += stepsPerRun) {
          ended = await rows.advance(given.signal)
          const texts = await orForget(textsOf(config, rows, Math.min(steps + stepsPerRun, maxNewTokens), first))
          prefixes.keep(rows, prompts, texts)
          yield* newTokens(texts, { eos: config.eos, maxNewTokens }, sent, first)
        }
      }
    },
    async score(cases, { batch = usualBatch, chunk = usualScoredChunk, places = [], signal, progress } = {}) {
      const done = await turn()
      try {
        checkCases(config, cases, batch)
        checkChunk(chunk)
        checkPlaces(cases, places)
        const scores: Score[] = []
        for (let first = 0; first < cases.length; first += batch) {
          signal?.throwIfAborted()
          const texts = cases.slice(first, first + batch).map(({ inputIds }) => inputIds)
          const rows = await rowsFor(anyGeneration, shapeOf(config, texts, undefined))
          prefixes.take(rows, texts)
          scores.push(...(await orForget(scoreRows(rows, texts, { chunk, places, first, vocab: config.vocab }, signal))))
          progress?.(first + texts.length, cases.length)
        }
        return scores
      } finally {
        done()
      }
    },
    release() {
      void kept.clear()
      session.release()
    },
  }
}

const isOutOfMemory = (error: unknown): boolean =>
  error instanceof HeddleError && ['states.memory', 'device.memory'].includes(error.code)

function checkChunk(chunk: number): void {
  if (Number.isSafeInteger(chunk) && chunk >= 1) return
  throw usageError('run.chunk', `chunk is ${chunk}, expected a positive integer`)
}

/** Without a limit of its own, a text ends where the model's positions do. */
function limited({ positions }: LlamaConfig, cases: readonly TokenCase[], given: GenerationOptions): GenerationOptions {
  if (given.maxNewTokens !== undefined) return given
  const room = positions - longestOf(cases)
  return room > 0 && room < usualTokens ? { ...given, maxNewTokens: room } : given
}

/** Tokens of a text where nothing says how many: what `resolveGeneration` takes. */
const usualTokens = 128

/** @throws usage `run.capacity` for a case that has no room for the tokens asked for, and for caches that no text could fill */
function checkCapacity(
  { positions }: LlamaConfig,
  cases: readonly TokenCase[],
  { maxNewTokens }: Generation,
  capacity: number | undefined,
): void {
  if (capacity !== undefined && !(Number.isInteger(capacity) && capacity >= 1 && capacity <= positions)) {
    throw usageError('run.capacity', `capacity is ${capacity}, expected an integer from 1 to ${positions}, the model's positions`)
  }
  const at = cases.findIndex(({ inputIds }) => inputIds.length + maxNewTokens > positions)
  if (at < 0) return
  const length = cases[at]?.inputIds.length ?? 0
  throw usageError(
    'run.capacity',
    `case ${at} has ${length} tokens and may get ${maxNewTokens} more, the model has ${positions} positions`,
    { hint: length < positions ? `ask for at most ${positions - length} new tokens` : 'the text leaves no room for a token' },
  )
}

/** Caches have room for at least so many places, and grow in steps of an eighth of the next power of two, so that shapes recur. */
const leastCapacity = 32

/** Places of caches for texts of at most `length` tokens. */
export function capacityFor(length: number, positions: number): number {
  const step = Math.max(2 ** Math.ceil(Math.log2(length)) / 8, leastCapacity)
  return Math.min(Math.ceil(length / step) * step, positions)
}

function shapeOf(
  config: LlamaConfig,
  prompts: readonly (readonly number[])[],
  generation: Pick<Generation, 'maxNewTokens'> | undefined,
  capacity = 0,
): RowsShape {
  const longest = prompts.reduce((most, { length }) => Math.max(most, length), 0)
  const length = longest + (generation?.maxNewTokens ?? 0)
  return {
    rows: prompts.length,
    capacity: capacityFor(Math.max(length, capacity), config.positions),
    steps: Math.ceil((generation?.maxNewTokens ?? 1) / stepsPerRun) * stepsPerRun,
    ends: endsOf(config.eos),
    reach: reachOf(config, length),
  }
}

/** The words of each row so far. @throws finding `run.value` for a word that was chosen by what is no number */
async function textsOf({ eos }: LlamaConfig, rows: Rows, steps: number, first: number): Promise<number[][]> {
  const history = await rows.state('history')
  const { rows: count } = rows.shape
  return Array.from({ length: count }, (_, row) => {
    const ids: number[] = []
    for (let step = 0; step < steps; step++) {
      const id = history[step * count + row] ?? -1
      if (id < 0) {
        throw findingError('run.value', `case ${first + row}: logits of token ${step} are no numbers`, {
          hint: 'an activation is too large for the dtype the model runs in, or its weights are damaged: try f32',
        })
      }
      ids.push(id)
      // What stands behind an end was not asked for, and may not have been computed.
      if (eos.includes(id)) break
    }
    return ids
  })
}

/** Tokens that rows have beyond those sent before, by case. */
function* newTokens(
  rows: readonly (readonly number[])[],
  { eos, maxNewTokens }: { readonly eos: readonly number[]; readonly maxNewTokens: number },
  sent: number[],
  first: number,
): Generator<LlamaTokens> {
  for (const [row, chosen] of rows.entries()) {
    const before = sent[row] ?? 0
    // A row that has ended was sent with its end id.
    if (chosen.length === before) continue
    const ids = beforeEnd(chosen, eos)
    const finish = ids.length < chosen.length ? 'end' : chosen.length >= maxNewTokens ? 'limit' : undefined
    yield { index: first + row, ids: ids.slice(before), ...(finish === undefined ? {} : { finish }) }
    sent[row] = chosen.length
  }
}
