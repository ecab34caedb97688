/** The fields of a configuration that say how to rotate, and what each may be: by type, since a field of another type is a mistake. */
import { z } from 'zod'
import { keysOf, size } from '../../checkpoint/config_file.js'

/** The fields of a configuration that say how to rotate. */
export interface RotaryFields {
  readonly rope_parameters?: unknown
  readonly rope_scaling?: unknown
  readonly rope_theta?: number | null | undefined
  readonly partial_rotary_factor?: number | null | undefined
  readonly original_max_position_embeddings?: number | null | undefined
}

/** At 1 all frequencies are equal, and below they grow. */
export const thetaField = z.number().gt(1)
export const fractionField = z.number().gt(0).max(1)
const factor = z.number().min(1)
const positive = z.number().positive()
/** One for each pair of channels of a head. */
const factors = z.array(positive).min(1).max(4096)

/** Fields that every type may have. */
export const common = {
  rope_type: z.string().optional(),
  type: z.string().optional(),
  rope_theta: thetaField.optional(),
  partial_rotary_factor: fractionField.optional(),
  original_max_position_embeddings: size.optional(),
}

export const schemas = {
  default: z.strictObject(common),
  linear: z.strictObject({ ...common, factor }),
  llama3: z.strictObject({ ...common, factor, low_freq_factor: positive, high_freq_factor: positive }),
  yarn: z.strictObject({
    ...common,
    factor,
    attention_factor: positive.optional(),
    mscale: z.number().nonnegative().optional(),
    mscale_all_dim: z.number().nonnegative().optional(),
    beta_fast: positive.optional(),
    beta_slow: positive.optional(),
    truncate: z.boolean().optional(),
  }),
  longrope: z.strictObject({
    ...common,
    factor: factor.optional(),
    attention_factor: positive.optional(),
    short_factor: factors,
    long_factor: factors,
  }),
} as const

/** Of a type's fields. */
export type RotaryFieldsOf<K extends RotaryType> = z.output<(typeof schemas)[K]>

export type RotaryType = keyof typeof schemas

/** All types there are. */
export const rotaryTypes: readonly RotaryType[] = keysOf(schemas)
