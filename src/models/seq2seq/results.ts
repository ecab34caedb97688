/** Texts from the history of a decoding: new tokens for streams, and the result of each case. */
import { beforeEnd, foundBeams, type Hypothesis } from '../decoding/beam_trace.js'
import type { Decoding } from '../decoding/decoding.js'
import type { Generation } from '../decoding/generation_options.js'
import type { StreamedTokens } from '../parts/options.js'
import type { Seq2seqConfig } from './seq2seq_config.js'

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

/** Progress of a batch: tokens already sent per row, steps taken, and the maximum number of steps. */
interface Sent {
  readonly sent: number[]
  /** Case index of the first row. */
  readonly first: number
  readonly taken: number
  readonly most: number
}

/** Tokens of rows that were not sent before, by case. The last tokens of an ended row are sent with its finish, and nothing after. */
export function* newTokens(rows: readonly Chosen[], { sent, first, taken, most }: Sent): Generator<GenerationTokens> {
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

/** Tokens that a row has chosen, up to its end id. */
interface Chosen {
  readonly ids: readonly number[]
  /** Log-probability of each token, if requested. */
  readonly logprobs?: readonly number[]
}

/** Tokens that each row has chosen so far. */
export async function rowsOf(
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

/** The result of each case of a finished decoding, in order. */
export async function resultsOf(config: Seq2seqConfig, decoding: Decoding, generation: Generation): Promise<GenerationResult[]> {
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
    logprobs: generation.logprobs,
  })
  return beams.map((hypotheses) => {
    const { ids, logprobs } = hypotheses[0] ?? { ids: [] }
    return { ids, ...(logprobs && { logprobs }), finish: finishOf(ids, generation), beams: hypotheses }
  })
}

/** Finish of a row, from its ids without an end id. */
const finishOf = ({ length }: readonly number[], { maxNewTokens }: Generation): GenerationResult['finish'] =>
  length < maxNewTokens ? 'end' : 'limit'
