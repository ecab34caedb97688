/**
 * RoPE configuration of a LLaMA-like model: `rope_parameters` of transformers 5, or `rope_theta` and `rope_scaling` of transformers 4,
 * checked field by field. Unknown types and fields are refused, because they would change every angle.
 */
import type { z } from 'zod'
import { checkField } from '../../checkpoint/config_file.js'
import { shown } from '../../checkpoint/safetensors_header.js'
import { usageError } from '../../errors.js'
import { getOwn } from '../../ir/get_own.js'
import { common, type RotaryChoices, type RotaryFields, type RotaryFieldsOf, type RotaryType, schemas } from './rotary_fields.js'

interface Rotated {
  /** Base of the frequencies. */
  readonly theta: number
  /** Fraction of a head's channels that is rotated; the rest is unchanged. */
  readonly fraction: number
}

/** Parameters of a RoPE table. Factors are the file's own numbers; they are rounded to float32 where HF rounds them. */
export type RotaryConfig = Rotated &
  (
    | { readonly type: 'default' }
    | { readonly type: 'linear'; readonly factor: number }
    /** The same as `default` for all positions that the model has. */
    | { readonly type: 'dynamic'; readonly factor: number }
    | {
        readonly type: 'llama3'
        readonly factor: number
        readonly lowFrequencyFactor: number
        readonly highFrequencyFactor: number
        readonly originalPositions: number
      }
    | {
        readonly type: 'yarn'
        readonly factor: number
        readonly originalPositions: number
        /** Factor of sines and cosines. */
        readonly attentionFactor: number
        readonly betaFast: number
        readonly betaSlow: number
        /** True if the ramp between unchanged and divided frequencies begins and ends at whole channels. */
        readonly truncate: boolean
      }
    | {
        readonly type: 'longrope'
        readonly originalPositions: number
        readonly attentionFactor: number
        /** Divisors of the frequencies for texts of at most the original positions, and for longer ones: one per channel pair. */
        readonly shortFactors: readonly number[]
        readonly longFactors: readonly number[]
      }
  )

/** Context from the rest of the configuration. */
export interface RotaryContext extends RotaryChoices {
  /** Name of the configuration in messages. */
  readonly name: string
  readonly modelType: string
  readonly headDim: number
  readonly positions: number
}

/** Context with the field that holds the RoPE parameters. */
interface Read extends RotaryContext {
  readonly source: 'rope_parameters' | 'rope_scaling'
}

const refused = ({ name }: Pick<RotaryContext, 'name'>, what: string, hint?: string) =>
  usageError('config.rope', `${name}: ${what}`, { hint })

/**
 * Parses the RoPE parameters of a configuration.
 * @throws usage `config.rope` for an unsupported type or combination of fields, `config.field` for a wrong field
 */
export function parseRotary(fields: RotaryFields, given: RotaryContext): RotaryConfig {
  const source = fields.rope_parameters == null ? 'rope_scaling' : 'rope_parameters'
  const context: Read = { ...given, source }
  if (fields.rope_parameters != null && fields.rope_scaling != null) {
    throw refused(context, 'it has rope_parameters and rope_scaling, expected one of them')
  }
  const stated = statedFields(fields, context)
  const type = typeOf(stated, context)
  checkKeys(stated, type, context)
  const read = <K extends RotaryType>(kind: K) =>
    checkField(schemas[kind] as z.ZodType, stated, source, context.name) as RotaryFieldsOf<K>
  const { rope_theta: theta = context.theta, partial_rotary_factor: fraction = 1 } = read(type)
  checkFraction(fraction, context)
  const rotated = { theta, fraction }
  switch (type) {
    case 'default':
    case 'mrope':
      // For text alone, the three positions that mrope mixes are equal (modeling_qwen2_vl.py).
      return { type: 'default', ...rotated }
    case 'dynamic':
      return { type, ...rotated, factor: dynamicFactor(read(type), context) }
    case 'linear':
      return { type, ...rotated, factor: read(type).factor }
    case 'llama3':
      return { type, ...rotated, ...llama3Of(read(type), context) }
    case 'yarn':
      return { type, ...rotated, ...yarnOf(read(type), context) }
    case 'longrope':
      return { type, ...rotated, ...longropeOf(read(type), rotaryDims(rotated, context.headDim) / 2, context) }
  }
}

/** Channels of a head that are rotated. */
export const rotaryDims = ({ fraction }: Pick<Rotated, 'fraction'>, headDim: number): number => Math.floor(headDim * fraction)

/** RoPE parameters from both levels of the configuration; null counts as missing. @throws usage `config.rope` if the levels disagree */
function statedFields(fields: RotaryFields, context: Read): Record<string, unknown> {
  const { source } = context
  const value = fields[source] ?? {}
  if (typeof value !== 'object' || Array.isArray(value)) {
    throw refused(context, `${source} is ${text(value)}, expected an object`)
  }
  const stated: Record<string, unknown> = Object.fromEntries(Object.entries(value).filter(([, inner]) => inner !== null))
  for (const key of ['rope_theta', 'partial_rotary_factor', 'original_max_position_embeddings'] as const) {
    const outer = fields[key]
    if (outer == null) continue
    stated[key] ??= outer
    if (stated[key] === outer) continue
    throw refused(context, `${key} is ${outer}, and ${source}.${key} is ${text(stated[key])}: they must agree`)
  }
  return stated
}

const text = (value: unknown): string => shown(JSON.stringify(value))

/** Type names of earlier versions. */
const aliases: Readonly<Record<string, RotaryType>> = { su: 'longrope' }

function typeOf(stated: Readonly<Record<string, unknown>>, context: Read): RotaryType {
  const { source, modelType, types } = context
  const { rope_type: type = stated.type, type: old = type } = stated
  const field = `${source}.${stated.rope_type === undefined ? 'type' : 'rope_type'}`
  if (type !== old) throw refused(context, `${field} is ${text(type)}, and ${source}.type is ${text(old)}`)
  if (type === undefined) {
    // The type of scaling parameters cannot be guessed.
    const more = Object.keys(stated).find((key) => !Object.hasOwn(common, key))
    if (more === undefined) return 'default'
    throw refused(context, `${field} is missing, but ${shown(more)} is present`, `supported: ${types.join(', ')}`)
  }
  const known = typeof type === 'string' ? (getOwn(aliases, type) ?? type) : type
  const found = types.find((each) => each === known)
  // Transformers saves mrope as `default`, with its sections.
  if (found === 'default' && stated.mrope_section !== undefined && types.includes('mrope')) return 'mrope'
  if (found !== undefined) return found
  const hint = `models of type ${modelType} support only these types`
  throw refused(context, `${field} is ${text(type)}, expected one of ${types.join(', ')}`, hint)
}

/** Checks that all fields belong to the type. @throws usage `config.field` for one that does not */
function checkKeys(stated: Readonly<Record<string, unknown>>, type: RotaryType, { name, source }: Read): void {
  const { shape } = schemas[type]
  const unknown = Object.keys(stated).find((key) => !Object.hasOwn(shape, key))
  if (unknown === undefined) return
  throw usageError(
    'config.field',
    `${name}: ${source}.${shown(unknown)} is ${text(stated[unknown])}, type ${type} has no such field`,
    {
      hint: `it has ${Object.keys(shape).join(', ')}`,
    },
  )
}

function checkFraction(fraction: number, context: Read): void {
  const { modelType, headDim, partial } = context
  if (fraction !== 1 && !partial) {
    throw refused(context, `partial_rotary_factor is ${fraction}, models of type ${modelType} rotate whole heads`)
  }
  const dims = rotaryDims({ fraction }, headDim)
  if (dims >= 2 && dims % 2 === 0) return
  const rotated = `${dims} of ${headDim} channels of a head are rotated (partial_rotary_factor ${fraction})`
  throw refused(context, `${rotated}, expected an even number from 2`)
}

function original(value: number | undefined, context: Read): number {
  if (value !== undefined) return value
  const field = `${context.source}.original_max_position_embeddings`
  throw refused(context, `${field} is missing, expected the number of positions that the model was first trained with`)
}

/** Hint for texts longer than the positions of a dynamic type. */
export const beyondDynamic =
  'its rotation is dynamic: the angles of longer texts change as they grow, and cached keys would have to be rotated again'

/**
 * Factor of a dynamic type. Its base is `theta * (factor * length / positions - (factor - 1)) ** (dim / (dim - 2))` for a text longer than
 * the model's positions, and `theta` for any other (modeling_rope_utils.py of transformers).
 * @throws usage `config.rope` for original positions other than the model's, which readers interpret differently
 */
function dynamicFactor({ factor, original_max_position_embeddings: stated }: RotaryFieldsOf<'dynamic'>, context: Read): number {
  const { source, positions } = context
  if (stated === undefined || stated === positions) return factor
  const field = `${source}.original_max_position_embeddings`
  throw refused(context, `${field} is ${stated} for a dynamic type, expected max_position_embeddings, ${positions}`)
}

function llama3Of(fields: RotaryFieldsOf<'llama3'>, context: Read) {
  const { low_freq_factor: low, high_freq_factor: high } = fields
  if (low >= high) {
    throw refused(context, `${context.source}.low_freq_factor is ${low}, expected less than high_freq_factor ${high}`)
  }
  return {
    factor: fields.factor,
    lowFrequencyFactor: low,
    highFrequencyFactor: high,
    originalPositions: original(fields.original_max_position_embeddings, context),
  }
}

function yarnOf(fields: RotaryFieldsOf<'yarn'>, context: Read) {
  const { factor, mscale = 0, mscale_all_dim: mscaleAll = 0, beta_fast: betaFast = 32, beta_slow: betaSlow = 1 } = fields
  if (betaFast <= betaSlow) {
    throw refused(context, `${context.source}.beta_fast is ${betaFast}, expected more than beta_slow ${betaSlow}`)
  }
  const scale = (weight: number): number => (factor <= 1 ? 1 : 0.1 * weight * Math.log(factor) + 1)
  const computed = mscale > 0 && mscaleAll > 0 ? scale(mscale) / scale(mscaleAll) : scale(1)
  return {
    factor,
    // Files published with YaRN state the original positions as the model's positions.
    originalPositions: fields.original_max_position_embeddings ?? context.positions,
    attentionFactor: fields.attention_factor ?? computed,
    betaFast,
    betaSlow,
    truncate: fields.truncate ?? true,
  }
}

function longropeOf(fields: RotaryFieldsOf<'longrope'>, pairs: number, context: Read) {
  for (const key of ['short_factor', 'long_factor'] as const) {
    const { length } = fields[key]
    if (length === pairs) continue
    throw refused(context, `${context.source}.${key} has ${length} numbers, expected ${pairs}: one for each pair of channels`)
  }
  const originalPositions = original(fields.original_max_position_embeddings, context)
  const growth = fields.factor ?? context.positions / originalPositions
  const computed = growth <= 1 ? 1 : Math.sqrt(1 + Math.log(growth) / Math.log(originalPositions))
  return {
    originalPositions,
    attentionFactor: fields.attention_factor ?? computed,
    shortFactors: fields.short_factor,
    longFactors: fields.long_factor,
  }
}
