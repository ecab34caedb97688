/** Options and results of `heddle calibrate`: shared by the sources of scales and the command. */
import type { FloatType } from '../checkpoint/convert.js'
import type { Method, Scales, Thresholds } from '../quant/index.js'
import type { DeviceName } from './opening.js'

/** Granularity of weight scales: one per output channel, or one per matrix by its largest weight. */
export const weightScales = ['per-channel', 'per-tensor'] as const

export interface CalibrateOptions {
  /** A file of cases in the format of `heddle run`. */
  readonly cases?: string | undefined
  /** A list of maxima in FasterTransformer v3.0's order, instead of cases. */
  readonly import?: string | undefined
  /** Takes the maxima of the checkpoint's quantisers, and calibrates activations without one by cases. */
  readonly fromCheckpoint?: boolean | undefined
  readonly method?: Method['name'] | undefined
  /** Percentile of the method `percentile`; 99.99 by default. */
  readonly percentile?: number | undefined
  readonly device?: DeviceName | undefined
  /** Storage type of the float model; f32 by default. */
  readonly dtype?: FloatType | undefined
  /** Weight scales of the six matrices of a layer; per channel by default. */
  readonly weights?: (typeof weightScales)[number] | undefined
  /** The scales file to write. */
  readonly out: string
  /** A list of maxima to write in addition. */
  readonly amaxList?: string | undefined
}

export interface CalibrateResult {
  readonly scales: Scales
  /** Observed and chosen maxima, by layer. For imported scales the two are the same. */
  readonly layers: readonly Thresholds[]
}
