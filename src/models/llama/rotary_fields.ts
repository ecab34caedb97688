/** Schemas of a configuration's RoPE fields, by type, because a field of another type is a mistake. */
import { z } from 'zod'
import { keysOf, size } from '../../checkpoint/config_file.js'

/** Base of the frequencies. At 1 all frequencies are equal; below 1 they grow. */
const thetaField = z.number().gt(1)
const fractionField = z.number().gt(0).max(1)

/** RoPE fields at the top level of a configuration. */
export const rotaryFields = {
  rope_parameters: z.unknown().optional(),
  rope_scaling: z.unknown().optional(),
  rope_theta: thetaField.nullish(),
  partial_rotary_factor: fractionField.nullish(),
  original_max_position_embeddings: size.nullish(),
}

export type RotaryFields = z.output<z.ZodObject<typeof rotaryFields>>

const factor = z.number().min(1)
const positive = z.number().positive()
/** One factor per channel pair of a head. */
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
  default: z.object(common),
  linear: z.object({ ...common, factor }),
  dynamic: z.object({ ...common, factor }),
  mrope: z.object({ ...common, mrope_section: z.array(size).max(16).optional(), mrope_interleaved: z.boolean().optional() }),
  llama3: z.object({ ...common, factor, low_freq_factor: positive, high_freq_factor: positive }),
  yarn: z.object({
    ...common,
    factor,
    attention_factor: positive.optional(),
    mscale: z.number().nonnegative().optional(),
    mscale_all_dim: z.number().nonnegative().optional(),
    beta_fast: positive.optional(),
    beta_slow: positive.optional(),
    truncate: z.boolean().optional(),
    /** Origin of the weights in YaRN's own files; it changes no angle. */
    finetuned: z.boolean().optional(),
  }),
  longrope: z.object({
    ...common,
    factor: factor.optional(),
    attention_factor: positive.optional(),
    short_factor: factors,
    long_factor: factors,
  }),
} as const

/** Parsed fields of a type. */
export type RotaryFieldsOf<K extends RotaryType> = z.output<(typeof schemas)[K]>

export type RotaryType = keyof typeof schemas

/** RoPE types and defaults of a model type. */
export interface RotaryChoices {
  readonly types: readonly RotaryType[]
  /** Default base. */
  readonly theta: number
  /** True if heads may be rotated partially. */
  readonly partial: boolean
}

/** All types. */
export const rotaryTypes: readonly RotaryType[] = keysOf(schemas)
