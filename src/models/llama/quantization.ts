/**
 * Quantisation scheme of a configuration. Of `compressed-tensors`, int8 weights with a scale per output channel or per matrix are supported: alone
 * (W8A16, also packed four to an int32), and with activations in int8 (W8A8), per token with scales found when they are quantised, or per tensor with
 * a scale in the folder. heddle quantises both kinds per token, for which it needs no stored scale.
 */
import { z } from 'zod'
import { checkField } from '../../checkpoint/config_file.js'
import { shown } from '../../checkpoint/safetensors_header.js'
import { usageError } from '../../errors.js'
import { ignoredBy } from './ignored_modules.js'

export interface LlamaQuantization {
  /** `w8a8`: int8 weights `[outputs, inputs]` with float scales `[outputs, 1]`, and int8 activations; `w8a16`: the weights alone. */
  readonly scheme: 'w8a8' | 'w8a16'
  /** True if four integers are packed into one int32, each with 128 added: `weight_packed` `[outputs, inputs / 4]`. */
  readonly packed: boolean
  /** True if a matrix has one scale: `weight_scale` `[1]`. */
  readonly perTensor: boolean
  /** True if the folder has scales of activations: `input_scale` `[1]` of each matrix. They are not used. */
  readonly inputScales: boolean
  /** Modules that stay in floats, as `ignoredBy` reads them. */
  readonly ignore: readonly string[]
}

const none = z.null().optional()
const int8 = { num_bits: z.literal(8), type: z.literal('int'), symmetric: z.literal(true), block_structure: none, actorder: none }

const weights = z.looseObject({
  ...int8,
  strategy: z.enum(['channel', 'tensor']),
  dynamic: z.literal(false).optional(),
  group_size: z.union([z.null(), z.literal(-1)]).optional(),
})
const activations = z.looseObject({ ...int8, strategy: z.literal('token'), dynamic: z.literal(true), group_size: none })
const staticActivations = z.looseObject({
  ...int8,
  strategy: z.literal('tensor'),
  dynamic: z.literal(false).optional(),
  group_size: none,
})

/** File formats, true if they pack. The first two store int8 identically (compressed_tensors/compressors/naive_quantized). */
const formats = { 'int-quantized': false, 'naive-quantized': false, 'pack-quantized': true } as const
const isFormat = (format: unknown): format is keyof typeof formats => typeof format === 'string' && Object.hasOwn(formats, format)

/** Parts of a scheme, not yet checked. */
const looseGroup = z.looseObject({
  targets: z.unknown().optional(),
  weights: z.looseObject({}).nullish(),
  input_activations: z.looseObject({}).nullish(),
  format: z.unknown().optional(),
})
type LooseGroup = z.output<typeof looseGroup>

const looseSchema = z.looseObject({
  format: z.unknown().optional(),
  config_groups: z.record(z.string(), looseGroup),
})

/** Remaining checks of a supported scheme. */
const rest = z.looseObject({
  quantization_status: z.enum(['compressed', 'frozen']).optional(),
  config_groups: z.record(z.string(), z.looseObject({ targets: z.tuple([z.literal('Linear')]), output_activations: none })),
  ignore: z.array(z.string().max(1024)).max(65_536).nullish(),
  kv_cache_scheme: none,
  transform_config: z.union([z.null(), z.strictObject({})]).optional(),
  sparsity_config: z.union([z.null(), z.looseObject({ format: z.literal('dense') }), z.strictObject({})]).optional(),
})

/** The supported schemes, for hints. */
export const readSchemes =
  'supported are floats, and compressed-tensors with symmetric int8 weights by channel or tensor, alone or with activations by token (dynamic) or tensor (static)'

/**
 * Parses the scheme of a configuration; undefined for floats.
 * @throws usage `config.quantization` for another method or scheme, and if the head is quantised; `config.field` for a wrong field in a
 * supported scheme
 */
export function parseQuantization(value: unknown, name: string): LlamaQuantization | undefined {
  if (value == null) return undefined
  const refused = (what: string, hint = readSchemes) =>
    usageError('config.quantization', `${name}: quantization_config${what}`, { hint })
  const { quant_method: method } = Object(value) as { readonly quant_method?: unknown }
  if (method === 'modelopt') {
    const { quant_algo: algorithm } = Object(value) as { readonly quant_algo?: unknown }
    throw refused(` is ModelOpt's, with quant_algo ${text(algorithm)}`)
  }
  if (method !== 'compressed-tensors') throw refused(` has quant_method ${shown(JSON.stringify(method) ?? 'nothing')}`)
  const { format, config_groups: groups } = checkField(looseSchema, value, 'quantization_config', name)
  const [group, ...others] = Object.values(groups)
  if (group === undefined || others.length > 0) {
    throw refused(`.config_groups has ${Object.keys(groups).length} groups, expected one for all matmuls`)
  }
  const scheme = schemeOf(group)
  const own = group.format ?? format
  if (scheme === undefined || !isFormat(own) || (scheme.scheme === 'w8a8' && formats[own])) {
    throw refused(` is compressed-tensors with ${described(group, own)}`)
  }
  const { ignore } = checkField(rest, value, 'quantization_config', name)
  const ignored = ignore ?? []
  if (!ignoredBy(ignored, 'lm_head')) throw refused('.ignore does not exclude lm_head, expected it to stay in floats')
  return { ...scheme, packed: formats[own], ignore: ignored }
}

/** The scheme of a group of modules; undefined if it is not supported. */
function schemeOf(group: LooseGroup): Omit<LlamaQuantization, 'packed' | 'ignore'> | undefined {
  const { data: stored } = weights.safeParse(group.weights)
  if (stored === undefined) return undefined
  const perTensor = stored.strategy === 'tensor'
  const inputs = group.input_activations
  if (inputs == null) return { scheme: 'w8a16', perTensor, inputScales: false }
  const inputScales = staticActivations.safeParse(inputs).success
  return inputScales || activations.safeParse(inputs).success ? { scheme: 'w8a8', perTensor, inputScales } : undefined
}

/** Description of a scheme: `4-bit int weights by group of 128, stored as pack-quantized`. */
function described({ weights: stored, input_activations: inputs }: LooseGroup, format: unknown): string {
  const parts = [...(stored == null ? ['float weights'] : [tensorText(stored, 'weights')])]
  if (inputs != null) parts.push(tensorText(inputs, 'activations'))
  return `${parts.join(' and ')}, stored as ${text(format)}`
}

function tensorText(fields: Readonly<Record<string, unknown>>, what: 'weights' | 'activations'): string {
  const { num_bits: bits, type, strategy, group_size: size, symmetric, dynamic, actorder, block_structure: block } = fields
  const more = [
    ...(size == null || size === -1 ? [] : [`of ${text(size)}`]),
    ...(block == null ? [] : [`of ${text(block)}`]),
    ...(symmetric === true ? [] : ['(not symmetric)']),
    ...(actorder == null ? [] : [`(actorder ${text(actorder)})`]),
    ...((dynamic ?? false) === (what === 'activations') ? [] : [what === 'activations' ? '(static)' : '(dynamic)']),
  ]
  return [`${text(bits)}-bit ${text(type)} ${what} by ${text(strategy)}`, ...more].join(' ')
}

/** A value for messages; strings without JSON's quotation marks. */
const text = (value: unknown): string => shown(typeof value === 'string' ? value : (JSON.stringify(value) ?? 'nothing'))
