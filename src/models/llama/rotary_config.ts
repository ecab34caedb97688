/**
 * How a LLaMA-like model rotates queries and keys: `rope_parameters` of transformers 5, or `rope_theta` and `rope_scaling` of
 * transformers 4, checked field by field. A type or a field that is not known here is refused: it would change every angle.
 */
import type { z } from 'zod'
import { checkField } from '../../checkpoint/config_file.js'
import { shown } from '../../checkpoint/safetensors_header.js'
import { usageError } from '../../errors.js'
import { getOwn } from '../../ir/get_own.js'
import { common, type RotaryChoices, type RotaryFields, type RotaryFieldsOf, type RotaryType, schemas } from './rotary_fields.js'

interface Rotated {
  /** The base of the frequencies. */
  readonly theta: number
  /** The share of a head's channels that is rotated; the rest passes as it is. */
  readonly fraction: number
}

/** What a rotation's table is made from. Factors are the file's own numbers; they are rounded to float32 where HF rounds them. */
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
        /** What sines and cosines are multiplied by. */
        readonly attentionFactor: number
        readonly betaFast: number
        readonly betaSlow: number
        /** True if the ramp between frequencies that are kept and those that are divided begins and ends at whole channels. */
        readonly truncate: boolean
      }
    | {
        readonly type: 'longrope'
        readonly originalPositions: number
        readonly attentionFactor: number
        /** Divisors of the frequencies for texts of at most the original positions, and for longer ones: one for each pair of channels. */
        readonly shortFactors: readonly number[]
        readonly longFactors: readonly number[]
      }
  )

/** What the rest of the configuration gives. */
export interface RotaryContext extends RotaryChoices {
  /** Used in messages. */
  readonly name: string
  readonly modelType: string
  readonly headDim: number
  readonly positions: number
}

/** Where a configuration says how to rotate. */
interface Read extends RotaryContext {
  readonly source: 'rope_parameters' | 'rope_scaling'
}

const refused = ({ name }: Pick<RotaryContext, 'name'>, what: string, hint?: string) =>
  usageError('config.rope', `${name}: ${what}`, { hint })

/**
 * The rotation that a configuration states.
 * @throws usage `config.rope` for a type or a combination of fields that is not supported, `config.field` for a field that is wrong
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
      // Of text alone the three positions that mrope mixes are one (modeling_qwen2_vl.py).
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

/** What is said of the rotation at either place. Null says nothing. @throws usage `config.rope` where the places disagree */
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

/** Names that earlier versions had. */
const aliases: Readonly<Record<string, RotaryType>> = { su: 'longrope' }

function typeOf(stated: Readonly<Record<string, unknown>>, context: Read): RotaryType {
  const { source, modelType, types } = context
  const { rope_type: type = stated.type, type: old = type } = stated
  const field = `${source}.${stated.rope_type === undefined ? 'type' : 'rope_type'}`
  if (type !== old) throw refused(context, `${field} is ${text(type)}, and ${source}.type is ${text(old)}`)
  if (type === undefined) {
    // Of a dictionary that says how to scale, the type cannot be guessed.
    const more = Object.keys(stated).find((key) => !Object.hasOwn(common, key))
    if (more === undefined) return 'default'
    throw refused(context, `${field} is missing, and ${shown(more)} is there`, `supported: ${types.join(', ')}`)
  }
  const known = typeof type === 'string' ? (getOwn(aliases, type) ?? type) : type
  const found = types.find((each) => each === known)
  // Transformers saves mrope as the default, with its sections.
  if (found === 'default' && stated.mrope_section !== undefined && types.includes('mrope')) return 'mrope'
  if (found !== undefined) return found
  const hint = `these are what models of type ${modelType} can have here`
  throw refused(context, `${field} is ${text(type)}, expected one of ${types.join(', ')}`, hint)
}

/** @throws usage `config.field` for a field that the type does not have */
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
  throw refused(context, `${field} is missing, expected the positions that the model was first trained with`)
}

/** The hint for texts that have more tokens than the positions of a dynamic type. */
export const beyondDynamic =
  'its rotation is dynamic: angles of longer texts change as they grow, and keys that are cached would have to be rotated again'

/**
 * The factor of a dynamic type, whose base is `theta * (factor * length / positions - (factor - 1)) ** (dim / (dim - 2))` for a text longer
 * than the model's positions, and `theta` for any other (modeling_rope_utils.py of transformers).
 * @throws usage `config.rope` for original positions that are not the model's, which readers understand differently
 */
function dynamicFactor({ factor, original_max_position_embeddings: stated }: RotaryFieldsOf<'dynamic'>, context: Read): number {
  const { source, positions } = context
  if (stated === undefined || stated === positions) return factor
  const field = `${source}.original_max_position_embeddings`
  throw refused(context, `${field} is ${stated} of a dynamic type, expected max_position_embeddings, ${positions}`)
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
    // YaRN was published with files that state the original positions as the model's.
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
