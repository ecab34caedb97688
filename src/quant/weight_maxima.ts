/**
 * Weight maxima that differ from the weights' own: one per matrix, or one per output channel chosen by training or another system.
 * Larger weights saturate at 127.
 */
import { usageError } from '../errors.js'
import type { ModelSizes } from './identity.js'

/** The matrices of an encoder layer, in the order of FasterTransformer v3.0's list. */
export const matrices = ['query', 'key', 'value', 'projection', 'fc1', 'fc2'] as const

export type Matrix = (typeof matrices)[number]

/** Magnitude that maps to 127: of a whole matrix, or of each of its output channels. */
export type Maxima = number | readonly number[]

/** Maxima of a layer's matrices. A missing matrix is scaled by its own channels. */
export type WeightMaxima = Readonly<Partial<Record<Matrix, Maxima>>>

/** Number of output channels of a matrix. */
export const channelsOfMatrix = (matrix: Matrix, { hidden, inner }: ModelSizes): number => (matrix === 'fc1' ? inner : hidden)

/** One number per output channel, in float32. */
export const eachChannel = (maxima: Maxima, channels: number): Float32Array =>
  typeof maxima === 'number' ? new Float32Array(channels).fill(maxima) : Float32Array.from(maxima)

/** Channel maxima in float32, as one number if all are equal. */
export function shortened(maxima: ArrayLike<number>): Maxima {
  const rounded = Array.from(maxima, Math.fround)
  const [first = 0] = rounded
  return rounded.every((value) => value === first) ? first : rounded
}

/**
 * Checks the maxima of a layer: each finite, at least 0, and as many as there are channels.
 * @throws usage `scales.weights` naming file, layer, matrix and channel
 */
export function checkWeightMaxima(
  layer: Readonly<Record<string, unknown>>,
  at: number,
  { model, file }: { readonly model: ModelSizes; readonly file: string },
): WeightMaxima {
  const refuse = (what: string) =>
    usageError('scales.weights', `${file}: layer ${at}: ${what}`, {
      hint: 'a matrix has one number, or one for each output channel: the largest magnitude of its weights',
    })
  return Object.fromEntries(
    Object.entries(layer).map(([name, given]) => {
      const matrix = matrices.find((each) => each === name)
      if (matrix === undefined) throw refuse(`there is no matrix ${name}, expected ${matrices.join(', ')}`)
      const channels = channelsOfMatrix(matrix, model)
      const numbers: readonly unknown[] = Array.isArray(given) ? given : [given]
      if (Array.isArray(given) && numbers.length !== channels)
        throw refuse(`${matrix} has ${numbers.length} maxima, expected 1 or ${channels}`)
      const wrong = numbers.findIndex((value) => !isMaximum(value))
      if (wrong >= 0) {
        const channel = Array.isArray(given) ? ` of channel ${wrong}` : ''
        throw refuse(`the maximum${channel} of ${matrix} is ${JSON.stringify(numbers[wrong]) ?? String(numbers[wrong])}`)
      }
      return [matrix, given as Maxima]
    }),
  )
}

/** True for a valid maximum, which is stored as a float32 like the channel's scale. */
const isMaximum = (value: unknown): boolean => typeof value === 'number' && value >= 0 && Number.isFinite(Math.fround(value))
