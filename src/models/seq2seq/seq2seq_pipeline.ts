/**
 * Pipeline of an encoder-decoder model: loads a model folder into an object that generates texts for batches of sources. Cases are
 * batched in order. Device programs and states are made per shape and cached while shapes recur. The host checks whether texts have
 * ended once every few steps; in between, the device runs alone.
 */
import { layouts } from '../../../specs/index.js'
import { openModelCheckpoint } from '../../checkpoint/checkpoint.js'
import { expectFloatType } from '../../checkpoint/convert.js'
import { defaultPlan, findPlan } from '../../program/plans.js'
import { expectPlanTypes } from '../../runtime/plan_types.js'
import { prepareWeights } from '../../runtime/prepare_weights.js'
import { openSession } from '../../runtime/session.js'
import { type Decoding, type DecodingConfig, openDecoding } from '../decoding/decoding.js'
import { type DecodingShape, endsOf } from '../decoding/decoding_states.js'
import { generationNames } from '../decoding/generation_names.js'
import { anyGeneration, type Generation, type GenerationOptions, resolveGeneration } from '../decoding/generation_options.js'
import type { Assembly } from '../parts/assembly.js'
import { expectOptions } from '../parts/known_options.js'
import { type Cache, makingRoom, releasingCache } from '../parts/lru_cache.js'
import { expectTokens, hasPairs, type MaskedCase, withoutMasks } from '../parts/masks.js'
import { orForget } from '../parts/no_numbers.js'
import { type BatchOptions, batchNames, type ModelOptions, type TextModel } from '../parts/options.js'
import { runQueue } from '../parts/run_queue.js'
import { checkCases, longestOf, type TokenCase } from '../parts/token_cases.js'
import { assembleDecoder, assembleMaskedEncoder, assembleSeq2seqEncoder, formOf } from './programs.js'
import { type GenerationResult, type GenerationTokens, newTokens, resultsOf, rowsOf } from './results.js'
import { readSeq2seqConfig, type Seq2seqConfig } from './seq2seq_config.js'
import { embeddingNames, hasLogitsBias, seq2seqWeights } from './seq2seq_weights.js'

export type { GenerationResult, GenerationTokens } from './results.js'

export type GenerateOptions = GenerationOptions & BatchOptions

export type Seq2seq = TextModel<Seq2seqConfig, GenerateOptions, GenerationResult, GenerationTokens>

/** Steps between two checks for ended texts. */
const stepsPerRun = 8
/** Padded source lengths are multiples of this. */
const sourceStep = 8
/** Number of cached shapes. */
const cachedShapes = 4

/**
 * Loads the folder of a Pegasus or Marian model.
 * @throws finding `weights.value`; usage `config.*`, `safetensors.*`, `checkpoint.*`, `weights.*`, `plan.*`, `run.dtype`; what the device
 * rejects with
 */
export async function loadSeq2seq(dir: string, options: ModelOptions): Promise<Seq2seq> {
  const { device, library, manifest, dtype = 'f32', signal } = options
  const plan = findPlan(options.plan ?? defaultPlan, manifest.plans)
  expectFloatType(dtype)
  const config = await readSeq2seqConfig(dir)
  const weights = seq2seqWeights(config, await openModelCheckpoint(dir, embeddingNames(config), signal), dtype)
  const headBias = hasLogitsBias(weights)
  const encoder = assembleSeq2seqEncoder(config, plan)
  const decoder = assembleDecoder(config, headBias, plan, anyGeneration, 1)
  const applications = [...encoder.wired.applications, ...decoder.wired.applications]
  expectPlanTypes(plan.name, applications, { T: dtype }, manifest)
  const prepared = prepareWeights(applications, weights, layouts)
  const session = await openSession({ device, library, manifest, layouts, weights: prepared }, signal)
  const shared = sharedDecodings({ session, config, plan, encoder, headBias, dtype, stepsPerRun }, () => {
    const masked = assembleMaskedEncoder(config, plan)
    expectPlanTypes(plan.name, masked.wired.applications, { T: dtype }, manifest)
    return masked
  })
  return {
    config,
    dtype,
    plan: plan.name,
    generate: (cases, given = {}) => generated(shared, cases, given),
    stream: (cases, given = {}) => streamed(shared, cases, given),
    release() {
      void shared.cache.clear()
      session.release()
    },
  }
}

/** State shared by the runs of a model. */
interface SharedDecodings {
  readonly config: Seq2seqConfig
  readonly cache: Cache<Decoding>
  /** The encoder with an attention mask. @throws usage `plan.model` for a plan without masked layers */
  maskedEncoder(): Assembly
  /** Decoding of a shape, from the cache or newly made. Cached shapes are evicted if memory is short: no run uses them then. */
  decodingFor(generation: Generation, shape: DecodingShape): Promise<Decoding>
  /** Waits for earlier runs, and returns the function that lets the next run begin. */
  nextRun(): Promise<() => void>
}

/** @param assembleMasked makes the encoder with an attention mask; called when first needed */
function sharedDecodings(model: Omit<DecodingConfig, 'generation' | 'shape'>, assembleMasked: () => Assembly): SharedDecodings {
  const cache = releasingCache<Decoding>(cachedShapes)
  let assembled: Assembly | undefined
  const maskedEncoder = (): Assembly => {
    assembled ??= assembleMasked()
    return assembled
  }
  return {
    config: model.config,
    cache,
    maskedEncoder,
    decodingFor: (generation, shape) =>
      makingRoom(cache, `${formOf(generation)} ${JSON.stringify(shape)}`, () => {
        const encoder = shape.masked === true ? maskedEncoder() : model.encoder
        return openDecoding({ ...model, encoder, generation, shape })
      }),
    nextRun: runQueue(),
  }
}

/** A batch whose sources are being read. */
interface StartedBatch {
  readonly decoding: Decoding
  readonly generation: Generation
  /** Index of its first case. */
  readonly first: number
}

async function* startedBatches(
  { config, decodingFor, maskedEncoder, nextRun }: SharedDecodings,
  cases: readonly TokenCase[],
  given: GenerateOptions,
): AsyncGenerator<StartedBatch, void> {
  expectOptions('generate', { ...generationNames, ...batchNames }, given)
  const { batch = 8, signal, progress } = given
  const done = await nextRun()
  try {
    const masked = Array.isArray(cases) ? withoutMasks(cases) : []
    checkCases(config, Array.isArray(cases) ? masked.map(({ item }) => item) : cases, batch)
    expectTokens(masked)
    if (hasPairs(masked)) maskedEncoder()
    const limits = { vocab: config.vocab, positions: config.positions, cases: cases.length, endTokens: config.endTokens }
    const generation = resolveGeneration(given, limits)
    for (let first = 0; first < cases.length; first += batch) {
      signal?.throwIfAborted()
      const chosen = masked.slice(first, first + batch)
      const sources = chosen.map(({ item }) => item.inputIds)
      const decoding = await decodingFor(generation, shapeOf(config, generation, chosen))
      const masks = chosen.map(({ pairs }) => pairs)
      decoding.start({ sources, masks, cases: sources.map((_, i) => first + i), generation }, signal)
      yield { decoding, generation, first }
      progress?.(first + sources.length, cases.length)
    }
  } finally {
    done()
  }
}

/** The text of each case, in order. */
async function generated(
  shared: SharedDecodings,
  cases: readonly TokenCase[],
  given: GenerateOptions,
): Promise<GenerationResult[]> {
  const { config, cache } = shared
  const results: GenerationResult[] = []
  for await (const { decoding, generation, first } of startedBatches(shared, cases, given)) {
    for (let ended = false, steps = 0; !ended && steps < generation.maxNewTokens; steps += stepsPerRun) {
      ended = await decoding.advance(1, given.signal)
    }
    await orForget(cache, decoding.expectNumbers(first))
    for (const result of await resultsOf(config, decoding, generation)) results.push(result)
  }
  return results
}

/** Tokens of the cases as they are chosen; results of beam search are returned complete. */
async function* streamed(
  shared: SharedDecodings,
  cases: readonly TokenCase[],
  given: GenerateOptions,
): AsyncGenerator<GenerationTokens, void> {
  const { config, cache } = shared
  for await (const { decoding, generation, first } of startedBatches(shared, cases, given)) {
    const sent: number[] = Array.from({ length: decoding.shape.batch }, () => 0)
    for (let ended = false, steps = 0; !ended && steps < generation.maxNewTokens; steps += stepsPerRun) {
      ended = await decoding.advance(1, given.signal)
      if (generation.choice.kind === 'beams') continue
      const taken = Math.min(steps + stepsPerRun, generation.maxNewTokens)
      const rows = await rowsOf(config, decoding, { steps: taken, logprobs: generation.logprobs })
      yield* newTokens(rows, { sent, first, taken, most: generation.maxNewTokens })
    }
    await orForget(cache, decoding.expectNumbers(first))
    if (generation.choice.kind !== 'beams') continue
    for (const [row, { beams: _, ...result }] of (await resultsOf(config, decoding, generation)).entries()) {
      yield { index: first + row, ...result }
    }
  }
}

/** Shape of a batch. Source lengths are rounded up, and the cache capacity to whole runs of steps, so that shapes recur. */
function shapeOf(config: Seq2seqConfig, { choice, maxNewTokens }: Generation, sources: readonly MaskedCase[]): DecodingShape {
  const longest = longestOf(sources.map(({ item }) => item))
  return {
    batch: sources.length,
    ...(hasPairs(sources) && { masked: true }),
    width: choice.kind === 'beams' ? choice.width : 1,
    source: Math.min(Math.ceil(longest / sourceStep) * sourceStep, config.positions),
    capacity: Math.ceil(maxNewTokens / stepsPerRun) * stepsPerRun,
    ends: endsOf(config.endTokens),
  }
}
