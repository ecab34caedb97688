/**
 * Quantising weights on the host: every output channel by itself, symmetrically, so that its largest magnitude becomes 127. Runs once
 * when a model is loaded.
 */
import { usageError } from '../errors.js'
import type { LayoutDecl } from '../lang/layout.js'

/** A weight matrix as checkpoints have it: row-major, one row an output channel. */
export interface WeightMatrix {
  /** For messages. */
  readonly name: string
  readonly values: Float32Array
  /** Output channels. */
  readonly rows: number
  /** Inputs of each. */
  readonly columns: number
}

export interface QuantisedWeights {
  /** In the layout asked for; its padding is zero. */
  readonly values: Int8Array
  /** What a step of each channel is worth: float32, 0 for a channel of zeros. */
  readonly scales: Float32Array
}

const largest = 127

/** Adding and subtracting it rounds a double of moderate size to the nearest integer, halves to the even one. */
const rounder = 1.5 * 2 ** 52

/**
 * The largest magnitude of each output channel.
 * @throws usage `quant.weights` for a value that is not finite, naming tensor and place; `quant.shape` for another number of values
 */
export function channelMaxima({ name, values, rows, columns }: WeightMatrix): Float32Array {
  if (values.length !== rows * columns) {
    throw usageError('quant.shape', `tensor ${name} has ${values.length} values, expected ${rows} x ${columns}`)
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
 * The magnitudes of channels that become 127: those given, or those of the weights themselves.
 * @param given one for each output channel, or one for all
 * @throws usage `quant.maxima` for another number of them, and for a 0 of a channel that has weights
 */
export function givenMaxima(name: string, own: Float32Array, given: number | readonly number[] | undefined): Float32Array {
  if (given === undefined) return own
  const maxima = typeof given === 'number' ? new Float32Array(own.length).fill(given) : Float32Array.from(given)
  if (maxima.length !== own.length)
    throw usageError('quant.maxima', `tensor ${name} has ${own.length} output channels, ${maxima.length} maxima are given`)
  const lost = maxima.findIndex((amax, channel) => amax === 0 && own[channel] !== 0)
  if (lost < 0) return maxima
  throw usageError('quant.maxima', `tensor ${name}: the maximum of channel ${lost} is 0, its weights reach ${own[lost]}`, {
    hint: 'weights beyond a maximum are cut off, and by 0 all are: leave maxima out, and channels go by their largest weights',
  })
}

/**
 * Quantises a matrix, row-major or into a layout over (output channel, input): `w * 127 / amax` of the channel, rounded to nearest,
 * ties to even, within [-127, 127].
 * @param maxima of the channels, where they are not those of the weights
 * @throws usage `quant.weights`, `quant.shape`; `quant.layout` for a layout that does not have two axes
 */
export function quantiseWeights(matrix: WeightMatrix, layout?: LayoutDecl, maxima = channelMaxima(matrix)): QuantisedWeights {
  const values = quantiseRows(matrix, maxima)
  const plain = layout === undefined || layout.name === 'row'
  return { values: plain ? values : intoLayout(layout, matrix, values), scales: stepsOf(maxima) }
}

/** What a step of each channel is worth, by the channels' largest magnitudes. */
export const stepsOf = (maxima: Float32Array): Float32Array => maxima.map((amax) => amax / largest)

/** Bytes of a quantised matrix, padding included. @throws usage `quant.layout` for a layout that does not have two axes */
export function quantisedBytes({ name, rows, columns }: Omit<WeightMatrix, 'values'>, layout: LayoutDecl | undefined): number {
  if (layout === undefined || layout.name === 'row') return rows * columns
  const [r, c] = axesOf(layout, name)
  return layout.size({ [r]: rows, [c]: columns })
}

/** The two axes of a matrix's layout. @throws usage `quant.layout` */
function axesOf(layout: LayoutDecl, name: string): readonly [string, string] {
  const [r, c, ...more] = layout.axes
  if (r !== undefined && c !== undefined && more.length === 0) return [r, c]
  throw usageError('quant.layout', `layout ${layout.name} of ${name} has axes (${layout.axes.join(' ')}), a matrix has two`)
}

/** A weight in steps of its channel; one beyond the channel's maximum is cut off. */
const quantise = (value: number, amax: number): number =>
  Math.max(-largest, Math.min(largest, (value * largest) / amax)) + rounder - rounder

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

/** Row-major integers of a matrix in a layout over (output channel, input), its padding zero. @throws usage `quant.layout` */
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
