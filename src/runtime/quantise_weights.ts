/**
 * Quantises weights on the host: per output channel, symmetrically, so that its largest magnitude becomes 127. Runs once when a model is
 * loaded.
 */
import { usageError } from '../errors.js'
import type { LayoutDecl } from '../lang/layout.js'

/** A weight matrix of a checkpoint: row-major, one row per output channel. */
export interface WeightMatrix {
  /** Name in messages. */
  readonly name: string
  readonly values: Float32Array
  /** Output channels. */
  readonly rows: number
  /** Inputs of each channel. */
  readonly columns: number
}

export interface QuantisedWeights {
  /** Values in the requested layout; its padding is zero. */
  readonly values: Int8Array
  /** Scale of each channel: float32, 0 for a channel of zeros. */
  readonly scales: Float32Array
}

const largest = 127

/** Adding and subtracting it rounds a double of moderate size to the nearest integer, ties to even. */
const roundingBias = 1.5 * 2 ** 52

/**
 * Largest magnitude of each output channel.
 * @throws usage `quant.weights` for a value that is not finite, naming tensor and index; `quant.shape` for a wrong number of values
 */
export function channelMaxima({ name, values, rows, columns }: WeightMatrix): Float32Array {
  if (values.length !== rows * columns) {
    throw usageError('quant.shape', `tensor ${name}: expected ${rows} x ${columns} values, got ${values.length}`)
  }
  const maxima = new Float32Array(rows)
  for (let row = 0; row < rows; row++) {
    let amax = 0
    for (let at = row * columns; at < (row + 1) * columns; at++) {
      const magnitude = Math.abs(values[at] ?? 0)
      if (!(magnitude < Number.POSITIVE_INFINITY)) {
        const place = `[${row}, ${at - row * columns}]`
        throw usageError('quant.weights', `tensor ${name} is ${values[at]} at ${place}`, { hint: 'weights must be finite' })
      }
      if (magnitude > amax) amax = magnitude
    }
    maxima[row] = amax
  }
  return maxima
}

/**
 * Magnitude of each channel that becomes 127: the given one, or the largest of the weights themselves.
 * @param given one per output channel, or one for all
 * @throws usage `quant.maxima` for a wrong number of maxima, and for a 0 of a channel with nonzero weights
 */
export function givenMaxima(name: string, own: Float32Array, given: number | readonly number[] | undefined): Float32Array {
  if (given === undefined) return own
  const maxima = typeof given === 'number' ? new Float32Array(own.length).fill(given) : Float32Array.from(given)
  if (maxima.length !== own.length)
    throw usageError(
      'quant.maxima',
      `tensor ${name}: expected ${own.length} maxima, one per output channel, got ${maxima.length}`,
    )
  const zeroed = maxima.findIndex((amax, channel) => amax === 0 && own[channel] !== 0)
  if (zeroed < 0) return maxima
  throw usageError('quant.maxima', `tensor ${name}: the maximum of channel ${zeroed} is 0, its weights reach ${own[zeroed]}`, {
    hint: 'weights beyond a maximum are clamped, to 0 by a maximum of 0: omit maxima to take the largest weight of each channel',
  })
}

/**
 * Quantises a matrix, row-major or into a layout over (output channel, input): `w * 127 / amax` of the channel, rounded to nearest,
 * ties to even, within [-127, 127].
 * @param maxima of the channels; by default those of the weights
 * @throws usage `quant.weights`, `quant.shape`; `quant.layout` for a layout that does not have two axes
 */
export function quantiseWeights(matrix: WeightMatrix, layout?: LayoutDecl, maxima = channelMaxima(matrix)): QuantisedWeights {
  const values = quantiseRows(matrix, maxima)
  const plain = layout === undefined || layout.name === 'row'
  return { values: plain ? values : intoLayout(layout, matrix, values), scales: stepsOf(maxima) }
}

/** Scale of each channel, from the largest magnitude of each. */
export const stepsOf = (maxima: Float32Array): Float32Array => maxima.map((amax) => amax / largest)

/** Bytes of a quantised matrix, padding included. @throws usage `quant.layout` for a layout that does not have two axes */
export function quantisedBytes({ name, rows, columns }: Omit<WeightMatrix, 'values'>, layout: LayoutDecl | undefined): number {
  if (layout === undefined || layout.name === 'row') return rows * columns
  const [r, c] = axesOf(layout, name)
  return layout.size({ [r]: rows, [c]: columns })
}

/** Returns the two axes of a matrix's layout. @throws usage `quant.layout` */
function axesOf(layout: LayoutDecl, name: string): readonly [string, string] {
  const [r, c, ...more] = layout.axes
  if (r !== undefined && c !== undefined && more.length === 0) return [r, c]
  throw usageError(
    'quant.layout',
    `layout ${layout.name} of ${name} has axes (${layout.axes.join(' ')}); expected two, as of a matrix`,
  )
}

/** Quantises a weight by the scale of its channel; a weight beyond the channel's maximum is clamped. */
const quantise = (value: number, amax: number): number =>
  Math.max(-largest, Math.min(largest, (value * largest) / amax)) + roundingBias - roundingBias

function quantiseRows({ values, rows, columns }: WeightMatrix, maxima: Float32Array): Int8Array {
  const quantised = new Int8Array(values.length)
  for (let row = 0; row < rows; row++) {
    const amax = maxima[row] ?? 0
    if (amax === 0) continue
    const end = (row + 1) * columns
    for (let at = row * columns; at < end; at++) quantised[at] = quantise(values[at] ?? 0, amax)
  }
  return quantised
}

/** Converts row-major integers of a matrix to a layout over (output channel, input), with zero padding. @throws usage `quant.layout` */
export function intoLayout(
  layout: LayoutDecl,
  { name, rows, columns }: Omit<WeightMatrix, 'values'>,
  values: Int8Array,
): Int8Array {
  const [r, c] = axesOf(layout, name)
  const extent = { [r]: rows, [c]: columns }
  const stored = new Int8Array(layout.size(extent))
  const index = { [r]: 0, [c]: 0 }
  for (let row = 0; row < rows; row++) {
    index[r] = row
    for (let column = 0; column < columns; column++) {
      index[c] = column
      stored[layout.offset(index, extent)] = values[row * columns + column] ?? 0
    }
  }
  return stored
}
