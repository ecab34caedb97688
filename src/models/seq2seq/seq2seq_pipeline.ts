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
import { beforeEnd, foundBeams, type Hypothesis } from '../decoding/beam_trace.js'
import { type Decoding, openDecoding } from '../decoding/decoding.js'
import { type DecodingShape, endsOf } from '../decoding/decoding_states.js'
import { generationNames } from '../decoding/generation_names.js'
import { anyGeneration, type Generation, type GenerationOptions, resolveGeneration } from '../decoding/generation_options.js'
import { expectOptions } from '../parts/known_options.js'
import { makingRoom, releasingCache } from '../parts/lru_cache.js'
import { orForget } from '../parts/no_numbers.js'
import { type BatchOptions, batchNames, type ModelOptions, type StreamedTokens, type TextModel } from '../parts/options.js'
import { runQueue } from '../parts/run_queue.js'
import { checkCases, type TokenCase } from '../parts/token_cases.js'
import { assembleDecoder, assembleSeq2seqEncoder, formOf } from './programs.js'
import { readSeq2seqConfig, type Seq2seqConfig } from './seq2seq_config.js'
import { embeddingNames, hasLogitsBias, seq2seqWeights } from './seq2seq_weights.js'

export type GenerateOptions = GenerationOptions & BatchOptions

export interface GenerationResult {
  readonly ids: readonly number[]
  /** Reason the text ended: an end id, or the token limit. */
  readonly finish: 'end' | 'limit'
  /** Log-probabilities of the ids, if requested. */
  readonly logprobs?: readonly number[]
  /** The best hypotheses, best first, if beams were requested. */
  readonly beams: readonly Hypothesis[] | undefined
}

export interface GenerationTokens extends StreamedTokens {
  /** Reason the text ended, given with its last tokens. */
  readonly finish?: GenerationResult['finish']
}

export type Seq2seq = TextModel<Seq2seqConfig, GenerateOptions, GenerationResult, GenerationTokens>

/** Steps between two checks for ended texts. */
const stepsPerRun = 8
/** Padded source lengths are multiples of this. */
const sourceStep = 8
/** Number of cached shapes. */
const cachedShapes = 4

/**
 * Loads the folder of a Pegasus or Marian model.
 * @throws finding `weights.value`; usage `config.*`, `safetensors.*`, `checkpoint.*`, `weights.*`, `plan.*`, `run.dtype`; what the device rejects with
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

  const decodings = releasingCache<Decoding>(cachedShapes)
  /** Cached shapes are evicted if memory is short: no run uses them now. */
  const decodingFor = (generation: Generation, shape: DecodingShape): Promise<Decoding> =>
    makingRoom(decodings, `${formOf(generation)} ${JSON.stringify(shape)}`, () =>
      openDecoding({ session, config, plan, encoder, headBias, generation, shape, dtype, stepsPerRun }),
    )

  const nextRun = runQueue()

  async function* batches(cases: readonly TokenCase[], given: GenerateOptions) {
    expectOptions('generate', { ...generationNames, ...batchNames }, given)
    const { batch = 8, signal, progress } = given
    const done = await nextRun()
    try {
      checkCases(config, cases, batch)
      const limits = { vocab: config.vocab, positions: config.positions, cases: cases.length, endTokens: config.endTokens }
      const generation = resolveGeneration(given, limits)
      for (let first = 0; first < cases.length; first += batch) {
        signal?.throwIfAborted()
        const sources = cases.slice(first, first + batch).map(({ inputIds }) => inputIds)
        const decoding = await decodingFor(generation, shapeOf(config, generation, sources))
        decoding.start({ sources, cases: sources.map((_, i) => first + i), generation }, signal)
        yield { decoding, generation, first }
        progress?.(first + sources.length, cases.length)
      }
    } finally {
      done()
    }
  }

  return {
    config,
    dtype,
    plan: plan.name,
    async generate(cases, given = {}) {
      const results: GenerationResult[] = []
      for await (const { decoding, generation, first } of batches(cases, given)) {
        for (let ended = false, steps = 0; !ended && steps < generation.maxNewTokens; steps += stepsPerRun) {
          ended = await decoding.advance(1, given.signal)
        }
        await orForget(decodings, decoding.expectNumbers(first))
        for (const result of await resultsOf(config, decoding, generation)) results.push(result)
      }
      return results
    },
    async *stream(cases, given = {}) {
      for await (const { decoding, generation, first } of batches(cases, given)) {
        const sent: number[] = Array.from({ length: decoding.shape.batch }, () => 0)
        for (let ended = false, steps = 0; !ended && steps < generation.maxNewTokens; steps += stepsPerRun) {
          ended = await decoding.advance(1, given.signal)
          if (generation.choice.kind === 'beams') continue
          const taken = Math.min(steps + stepsPerRun, generation.maxNewTokens)
          const rows = await rowsOf(config, decoding, { steps: taken, logprobs: generation.logprobs })
          yield* newTokens(rows, { sent, first, taken, most: generation.maxNewTokens })
        }
        await orForget(decodings, decoding.expectNumbers(first))
        if (generation.choice.kind !== 'beams') continue
        for (const [row, { ids, finish }] of (await resultsOf(config, decoding, generation)).entries()) {
          yield { index: first + row, ids, finish }
        }
      }
    },
    release() {
      void decodings.clear()
      session.release()
    },
  }
}

/** Progress of a batch: tokens already sent per row, steps taken, and the maximum number of steps. */
interface Sent {
  readonly sent: number[]
  /** Case index of the first row. */
  readonly first: number
  readonly taken: number
  readonly most: number
}

/** Tokens of rows that were not sent before, by case. The last tokens of an ended row are sent with its finish, and nothing after. */
function* newTokens(rows: readonly Chosen[], { sent, first, taken, most }: Sent): Generator<GenerationTokens> {
  for (const [row, { ids, logprobs }] of rows.entries()) {
    const before = sent[row] ?? 0
    const finish = ids.length < taken ? 'end' : taken >= most ? 'limit' : undefined
    if (before > ids.length || (ids.length === before && finish === undefined)) continue
    yield {
      ...{ index: first + row, ids: ids.slice(before) },
      ...(logprobs === undefined ? {} : { logprobs: logprobs.slice(before) }),
      ...(finish === undefined ? {} : { finish }),
    }
    sent[row] = finish === undefined ? ids.length : Number.POSITIVE_INFINITY
  }
}

/** Shape of a batch. Source lengths are rounded up, and the cache capacity to whole runs of steps, so that shapes recur. */
function shapeOf(
  config: Seq2seqConfig,
  { choice, maxNewTokens }: Generation,
  sources: readonly (readonly number[])[],
): DecodingShape {
  const longest = sources.reduce((longest, { length }) => Math.max(longest, length), 0)
  return {
    batch: sources.length,
    width: choice.kind === 'beams' ? choice.width : 1,
    source: Math.min(Math.ceil(longest / sourceStep) * sourceStep, config.positions),
    capacity: Math.ceil(maxNewTokens / stepsPerRun) * stepsPerRun,
    ends: endsOf(config.endTokens),
  }
}

/** Tokens that a row has chosen, up to its end id. */
interface Chosen {
  readonly ids: readonly number[]
  /** Log-probability of each token, if requested. */
  readonly logprobs?: readonly number[]
}

/** Tokens that each row has chosen so far. */
async function rowsOf(
  { endTokens }: Seq2seqConfig,
  decoding: Decoding,
  { steps, logprobs }: { readonly steps: number; readonly logprobs: boolean },
): Promise<Chosen[]> {
  const history = await decoding.read('history')
  const losses = logprobs ? await decoding.read('losses') : undefined
  const rows = decoding.shape.batch * decoding.shape.width
  return Array.from({ length: rows }, (_, row) => {
    const ids = beforeEnd(
      Array.from({ length: steps }, (_, step) => history[step * rows + row] ?? 0),
      endTokens,
    )
    return losses === undefined ? { ids } : { ids, logprobs: ids.map((_, step) => -(losses[step * rows + row] ?? 0)) }
  })
}

async function resultsOf(config: Seq2seqConfig, decoding: Decoding, generation: Generation): Promise<GenerationResult[]> {
  if (generation.choice.kind !== 'beams') {
    const { maxNewTokens: steps, logprobs } = generation
    const rows = await rowsOf(config, decoding, { steps, logprobs })
    return rows.map((chosen) => ({ ...chosen, finish: finishOf(chosen.ids, generation), beams: undefined }))
  }
  const { batch } = decoding.shape
  const beams = await foundBeams(decoding.read, generation.choice, {
    batch,
    ends: config.endTokens,
    most: generation.maxNewTokens,
  })
  return beams.map((hypotheses) => {
    const ids = hypotheses[0]?.ids ?? []
    return { ids, finish: finishOf(ids, generation), beams: hypotheses }
  })
}

/** Finish of a row, from its ids without an end id. */
const finishOf = ({ length }: readonly number[], { maxNewTokens }: Generation): GenerationResult['finish'] =>
  length < maxNewTokens ? 'end' : 'limit'
