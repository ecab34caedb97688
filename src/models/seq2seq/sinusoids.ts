/** Tables of positions that a checkpoint leaves out: sines and cosines, in the layout that the model was trained with. */
import type { FloatType } from '../../checkpoint/convert.js'
import { usageError } from '../../errors.js'
import { encode } from '../../runtime/buffer.js'
import { computedTensor, type DeferredTensor } from '../../runtime/weight.js'
import type { Seq2seqConfig, Sinusoids } from './seq2seq_config.js'

/** Rows of a table that is computed at most: nothing in a checkpoint holds the count of positions against a table that it leaves out. */
const mostPositions = 2 ** 17
/** Rows of a computed table that are made between two looks at whether loading was cancelled. */
const rowsAtOnce = 512
const slowest = 10_000

/** The value of a channel at a position. */
type Wave = (position: number, channel: number) => number

/** Waves of `channels`, by their layout (Vaswani et al. 2017; what the layouts differ in is said where they are declared). */
const waves: Readonly<Record<Sinusoids, (channels: number) => Wave>> = {
  halves: (channels) => {
    // Of an odd number there is one sine more.
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
    throw usageError('config.count', `max_position_embeddings is ${positions}, and the checkpoint has no table of positions`, {
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
