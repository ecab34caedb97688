/**
 * Converts metadata of a GGUF file to the fields of Hugging Face's `config.json`, so that both are checked against the same rules. Unknown metadata
 * of the architecture are refused by name.
 */
import { usageError } from '../errors.js'
import type { Gguf } from './gguf.js'
import type { GgufValue } from './gguf_header.js'
import { shown } from './safetensors_header.js'

/** Model type per architecture name in files. */
const architectures = { llama: 'llama', qwen2: 'qwen2', qwen3: 'qwen3', phi3: 'phi3' } as const

type Architecture = keyof typeof architectures

/** Metadata of an architecture that are redundant, or do not affect the computation. */
const silent = new Set([
  'vocab_size',
  'rope.dimension_count',
  'attention.value_length',
  'tensor_data_layout',
  'rope.scaling.finetuned',
])

/** Expert counts, which some converters write as 0 for dense models. */
const expertCounts = ['expert_count', 'expert_used_count']

/** Hugging Face's fields, by the metadata that they come from. */
const fieldNames: Readonly<Record<string, string>> = {
  block_count: 'num_hidden_layers',
  embedding_length: 'hidden_size',
  feed_forward_length: 'intermediate_size',
  context_length: 'max_position_embeddings',
  'attention.head_count': 'num_attention_heads',
  'attention.head_count_kv': 'num_key_value_heads',
  'attention.key_length': 'head_dim',
  'attention.layer_norm_rms_epsilon': 'rms_norm_eps',
  'attention.sliding_window': 'sliding_window',
  'rope.freq_base': 'rope_theta',
}

const scaling = {
  type: 'rope.scaling.type',
  factor: 'rope.scaling.factor',
  original: 'rope.scaling.original_context_length',
  attention: 'rope.scaling.attn_factor',
}

/** Default of files that state no base. */
const usualTheta = 10_000

/**
 * Fields of a configuration.
 * @throws usage `config.model_type`, `gguf.metadata` for unknown or missing metadata, and for values that differ between layers
 */
export function ggufFields({ metadata, tensors }: Gguf, name: string): Record<string, unknown> {
  const architecture = architectureOf(metadata, name)
  const own = new Map(
    [...metadata]
      .filter(([key]) => key.startsWith(`${architecture}.`))
      .map(([key, value]): [string, GgufValue] => [key.slice(architecture.length + 1), value])
      .filter(([key, value]) => !(expertCounts.includes(key) && value === 0)),
  )
  const known = new Set([...Object.keys(fieldNames), ...Object.values(scaling), ...silent])
  const unknown = [...own.keys()].find((key) => !known.has(key))
  if (unknown !== undefined) {
    throw usageError(
      'gguf.metadata',
      `${name}: ${architecture}.${shown(unknown)} is ${text(own.get(unknown))}, and is not known here`,
    )
  }
  const fields: Record<string, unknown> = { model_type: architectures[architecture], hidden_act: 'silu' }
  for (const [key, field] of Object.entries(fieldNames)) {
    const value = own.get(key)
    if (value !== undefined) fields[field] = oneOf(value, `${name}: ${architecture}.${key}`)
  }
  if (architecture === 'llama' && fields.sliding_window !== undefined) {
    const window = `${name}: llama.attention.sliding_window is ${text(fields.sliding_window)}`
    throw usageError('gguf.metadata', `${window}, and models of type llama have none`)
  }
  const vocab = tensors.get('token_embd.weight')?.shape[0]
  if (vocab === undefined) throw usageError('weights.missing', `${name}: tensor token_embd.weight is missing`)
  const biased = tensors.has('blk.0.attn_q.bias')
  return {
    ...fields,
    vocab_size: vocab,
    rope_theta: fields.rope_theta ?? usualTheta,
    // Phi-3's files write 0 for no window.
    sliding_window: fields.sliding_window === 0 ? null : (fields.sliding_window ?? null),
    num_key_value_heads: fields.num_key_value_heads ?? fields.num_attention_heads,
    head_dim: fields.head_dim ?? null,
    tie_word_embeddings: !tensors.has('output.weight'),
    ...(biased && { attention_bias: true }),
    ...rotation(own, fields, { architecture, name }),
    ...tokens(metadata, name),
  }
}

const text = (value: unknown): string => shown(JSON.stringify(value) ?? 'nothing')

function architectureOf(metadata: ReadonlyMap<string, GgufValue>, name: string): Architecture {
  const stated = metadata.get('general.architecture')
  const known = Object.keys(architectures) as Architecture[]
  const found = known.find((each) => each === stated)
  if (found !== undefined) return found
  throw usageError('config.model_type', `${name}: general.architecture is ${text(stated)}, expected one of ${known.join(', ')}`)
}

/** A number that may be given per layer. */
function oneOf(value: GgufValue, what: string): GgufValue {
  if (!Array.isArray(value)) return value
  const [first] = value
  if (value.length > 0 && value.every((each) => each === first)) return first
  throw usageError('gguf.metadata', `${what} is ${text(value)}, expected one number for all layers`)
}

function rotation(
  own: ReadonlyMap<string, GgufValue>,
  fields: Readonly<Record<string, unknown>>,
  { architecture, name }: { readonly architecture: Architecture; readonly name: string },
): Record<string, unknown> {
  const headDim = Number(fields.head_dim ?? Number(fields.hidden_size) / Number(fields.num_attention_heads))
  const value = own.get('attention.value_length')
  if (value !== undefined && value !== headDim) {
    throw usageError(
      'gguf.metadata',
      `${name}: ${architecture}.attention.value_length is ${text(value)}, expected ${headDim} as of keys`,
    )
  }
  const rotated = own.get('rope.dimension_count') ?? headDim
  const partial = rotated === headDim ? {} : { partial_rotary_factor: Number(rotated) / headDim }
  const type = own.get(scaling.type) ?? 'none'
  const [factor, original, attention] = [own.get(scaling.factor), own.get(scaling.original), own.get(scaling.attention)]
  const more = original === undefined ? {} : { original_max_position_embeddings: original }
  switch (type) {
    case 'none':
      // Longer models of Phi-3 have factors as tensors, and no type.
      if (attention === undefined || (attention === 1 && architecture !== 'phi3')) return partial
      if (architecture !== 'phi3') break
      return { ...partial, rope_scaling: { rope_type: 'longrope', ...more, attention_factor: attention, ...ones(rotated) } }
    case 'linear':
      if (attention !== undefined && attention !== 1) break
      return { ...partial, rope_scaling: { rope_type: 'linear', factor } }
    case 'yarn':
      if (attention !== undefined && attention !== 1) break
      return { ...partial, rope_scaling: { rope_type: 'yarn', factor, ...more } }
    case 'longrope':
      return {
        ...partial,
        rope_scaling: {
          rope_type: 'longrope',
          ...more,
          ...(attention !== undefined && { attention_factor: attention }),
          ...ones(rotated),
        },
      }
  }
  // For a type that multiplies by no factor, a factor other than 1 is refused instead of ignored.
  const isFactor = ['none', 'linear', 'yarn'].includes(String(type))
  const [key, wrong] = isFactor ? [scaling.attention, attention] : [scaling.type, type]
  throw usageError(
    'config.rope',
    `${name}: ${architecture}.${key} is ${text(wrong)}, expected ${isFactor ? `1 of type ${type}` : 'none, linear, yarn or longrope'}`,
  )
}

/** Rotation factors that are stored as tensors of the file. */
function ones(rotated: GgufValue): Record<string, readonly number[]> {
  const list = Array.from({ length: Math.min(4096, Math.max(0, Math.floor(Number(rotated) / 2) || 0)) }, () => 1)
  return { short_factor: list, long_factor: list }
}

/** First, last and padding tokens. Turns and messages may have end tokens of their own. */
function tokens(metadata: ReadonlyMap<string, GgufValue>, name: string): Record<string, unknown> {
  const id = (key: string): GgufValue | null => metadata.get(`tokenizer.ggml.${key}_token_id`) ?? null
  const ends = ['eos', 'eot', 'eom'].map(id).filter((each) => each !== null)
  const wrong = [...ends, id('bos'), id('padding')].find((each) => each !== null && typeof each !== 'number')
  if (wrong !== undefined) throw usageError('gguf.metadata', `${name}: a token id is ${text(wrong)}, expected a number`)
  return { bos_token_id: id('bos'), eos_token_id: ends, pad_token_id: id('padding') }
}
