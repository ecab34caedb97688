/**
 * The threshold of a row: the largest key such that the elements with that key or a larger one weigh at least `target` together. Found without
 * sorting, by native/device/threshold.cuh.
 */
import { thresholdOf } from '../../threshold.js'
import { type Row, type TeamFunction, teamConstruct } from './construct.js'

/**
 * Cutoff of a row by cumulative weight: `threshold(n, target, (c) => key(c), (c) => weight(c))` is the largest key such that the elements
 * with that key or a larger one weigh at least `target` together, and more than 0; -Infinity if all of them weigh less. `key(c) >= t`
 * selects the elements at or above it. With weights of 1 it is the `target`-th largest key. Weights are in [0, 256]: less (and NaN)
 * counts as 0, more as 256; a key that is NaN counts as -Infinity. On a device nothing is sorted. Weights are summed in units of 2^-36,
 * so that the result does not depend on the order of summation, and a target of Infinity costs nothing.
 */
export const threshold: TeamFunction<'threshold', (length: number, target: number, key: Row, weight: Row) => number> =
  teamConstruct(
    'threshold',
    (length: number, target: number, key: Row, weight: Row): number => thresholdOf(length, target, key, weight),
    {
      words: 'a threshold',
      takes: 4,
      example: 'threshold(n, target, (c) => x(m, c), (c) => 1)',
      read(args) {
        const length = args.integer(0, 'length')
        const target = args.float(1)
        const key = args.elements(2, length, 'floats')
        const weight = args.elements(3, length, 'floats')
        return { type: 'f32', length, index: args.index, scalars: { target }, elements: { key, weight } }
      },
      evaluate: (length, { target }, { key, weight }) => thresholdOf(length, target, key, weight),
      mismatch(_, { target }, { key, weight }) {
        const other = [target, key, weight].find((type) => type !== 'f32')
        return other && `a threshold takes floats, not ${other}`
      },
      print: ({ scalars: { target }, elements: { key, weight }, ...loop }, text) =>
        `threshold(${text.loop(loop)}: ${text.expr(key)} weighs ${text.expr(weight)}) of ${text.operand(target)}`,
      error: { of: 'key', as: 'element' },
      // Over the bits of a key, a byte at a time.
      work: { walks: 4, instructions: 4 },
      // A search reads the row again in any case, and compiles slowly: one block variant is enough.
      widest: 'wide block',
      source({ length, scalars: { target }, elements: { key, weight } }, writer) {
        const [count, wanted, keyOf] = [writer.expr(length), writer.expr(target), writer.element(key)]
        // A weight usually depends on the key alone. The key is passed with the index, so that it is not read again.
        return `heddle::threshold(team, ${count}, ${wanted}, ${keyOf}, ${writer.elementOf(weight, key, 'key')})`
      },
    },
  )
