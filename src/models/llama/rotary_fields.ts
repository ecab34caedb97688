/** The fields of a configuration that say how to rotate, and what each may be: by type, since a field of another type is a mistake. */
import { z } from 'zod'
import { keysOf, size } from '../../checkpoint/config_file.js'

/** At 1 all frequencies are equal, and below they grow. */
const thetaField = z.number().gt(1)
const fractionField = z.number().gt(0).max(1)

/** The fields of a configuration that say how to rotate. */
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
    /** YaRN's own files say how their weights were made; it changes no angle. */
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

/** Of a type's fields. */
export type RotaryFieldsOf<K extends RotaryType> = z.output<(typeof schemas)[K]>

export type RotaryType = keyof typeof schemas

/** What models of a kind may have. */
export interface RotaryChoices {
  readonly types: readonly RotaryType[]
  /** The base of a model that states none. */
  readonly theta: number
  /** True if a part of a head may be rotated. */
  readonly partial: boolean
}

/** All types there are. */
export const rotaryTypes: readonly RotaryType[] = keysOf(schemas)
