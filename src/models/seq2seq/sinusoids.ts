/** Sinusoidal position tables for checkpoints without them, in the layout that the model was trained with. */
import type { FloatType } from '../../checkpoint/convert.js'
import { usageError } from '../../errors.js'
import { encode } from '../../runtime/buffer.js'
import { computedTensor, type DeferredTensor } from '../../runtime/weight.js'
import type { Seq2seqConfig, Sinusoids } from './seq2seq_config.js'

/** Largest number of rows of a computed table: without a table, nothing in the checkpoint bounds the number of positions. */
const mostPositions = 2 ** 17
/** Rows computed between two checks for cancelled loading. */
const rowsAtOnce = 512
const slowest = 10_000

/** Value of a channel at a position. */
type Wave = (position: number, channel: number) => number

/** Waves of `channels`, by layout (Vaswani et al. 2017; `layouts` describes the differences). */
const waves: Readonly<Record<Sinusoids, (channels: number) => Wave>> = {
  halves: (channels) => {
    // An odd number of channels has one more sine than cosines.
    const sines = Math.ceil(channels / 2)
    return (position, channel) => {
      const k = channel < sines ? channel : channel - sines
      const angle = position / slowest ** ((2 * k) / channels)
      return channel < sines ? Math.sin(angle) : Math.cos(angle)
    }
  },
  pairs: (channels) => (position, channel) => {
    const angle = position / slowest ** ((channel - (channel % 2)) / channels)
    return channel % 2 === 0 ? Math.sin(angle) : Math.cos(angle)
  },
  timescales: (channels) => {
    const half = channels / 2
    const increment = Math.log(slowest) / (half - 1)
    return (position, channel) => {
      const angle = position * Math.exp(-(channel % half) * increment)
      return channel < half ? Math.sin(angle) : Math.cos(angle)
    }
  },
}

/**
 * The table `[positions, hidden]` of a model.
 * @throws usage `config.count` for more positions than any model has
 */
export function sinusoids(
  { positions, firstPosition, sinusoids: layout }: Pick<Seq2seqConfig, 'positions' | 'firstPosition' | 'sinusoids'>,
  hidden: number,
  dtype: FloatType,
): DeferredTensor {
  if (positions > mostPositions) {
    throw usageError('config.count', `max_position_embeddings is ${positions}, and the checkpoint has no position table`, {
      hint: `tables of at most ${mostPositions} positions are computed`,
    })
  }
  const value = waves[layout](hidden)
  return computedTensor(dtype, [positions, hidden], async function* (signal) {
    for (let first = 0; first < positions; first += rowsAtOnce) {
      signal?.throwIfAborted()
      const length = Math.min(rowsAtOnce, positions - first) * hidden
      const at = first + firstPosition
      const values = Float32Array.from({ length }, (_, i) => value(at + Math.floor(i / hidden), i % hidden))
      yield encode(dtype, values)
    }
  })
}
