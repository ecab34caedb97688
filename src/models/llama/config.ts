/**
 * HF `config.json` of LLaMA-like models: read, checked, and reduced to the fields that assembly and generation need. Both the field names of
 * transformers 4 (`rope_theta`, `rope_scaling`, `torch_dtype`) and of transformers 5 (`rope_parameters`, `dtype`) are read. Missing fields
 * have HF's default for the model type. Fields that HF ignores for a type are ignored: `sliding_window` of LLaMA, whose attention is over all
 * tokens (modeling_llama.py), and `attention_bias` of types with fixed biases (modeling_qwen2.py, modeling_mistral.py, modeling_phi3.py).
 * The checkpoint's tensors are checked for exactly these biases.
 */
import type { CacheType } from '../../../specs/graphs/llama_caches.js'
import { checkFields } from '../../checkpoint/config_file.js'
import type { FloatType } from '../../checkpoint/convert.js'
import { usageError } from '../../errors.js'
import { bannedTokens, checkToken, expectArchitecture, readModelConfig } from '../parts/config_checks.js'
import { expectModelType } from '../parts/model_types.js'
import { dtypes, type Fields, type GenerationFields, generationSchema, schema } from './config_fields.js'
import { type Family, families, type LlamaType } from './families.js'
import { type LlamaQuantization, parseQuantization } from './quantization.js'
import { beyondDynamic, parseRotary, type RotaryConfig } from './rotary_config.js'

export interface LlamaConfig {
  readonly modelType: LlamaType
  readonly layers: number
  readonly hidden: number
  /** Query heads; a multiple of the key-value heads. */
  readonly heads: number
  readonly kvHeads: number
  /** Storage of cached keys and values, `float` by default. Set by the caller that loads the model, not by its files. */
  readonly caches?: CacheType
  /** Channels per head; all heads together need not have `hidden` channels. */
  readonly headDim: number
  readonly inner: number
  readonly vocab: number
  /** Length of the longest text, in tokens. */
  readonly positions: number
  /** Hint for longer texts, if their RoPE angles would differ. */
  readonly beyond?: string | undefined
  /** Epsilon of the RMS norms. */
  readonly eps: number
  /** True if the embeddings are also the logits' weight. */
  readonly tied: boolean
  /** True if queries, keys and values have biases. */
  readonly qkvBias: boolean
  /** True if the attention's output projection has a bias. */
  readonly outputBias: boolean
  /** True if each query and key head is normalised before RoPE. */
  readonly qkNorm: boolean
  /** Number of keys that a query attends to in a layer with a window: its own and the `window - 1` before it. */
  readonly window: number | undefined
  /** Per layer, true if it has the window. */
  readonly windowLayers: readonly boolean[]
  readonly rotary: RotaryConfig
  /** True if the checkpoint's heads are rotated in adjacent pairs of channels; in halves if undefined. */
  readonly interleaved?: true
  /** True if the checkpoint has query, key and value weights in one tensor, and gate and up in another. */
  readonly fusedRows: boolean
  /** Quantisation of the layers' matmul weights; floats if undefined. */
  readonly quantization: LlamaQuantization | undefined
  /** Type of the checkpoint's floats, if the file states it. */
  readonly dtype: FloatType | undefined
  /** Token at the start of a text. */
  readonly bos: number | undefined
  /** Tokens that end a text. */
  readonly eos: readonly number[]
  readonly pad: number | undefined
  /** Tokens banned from texts. */
  readonly banned: readonly number[]
}

/** The configuration of a model folder. @throws usage `config.read`, `config.json`, and what `parseLlamaConfig` throws */
export const readLlamaConfig = (dir: string): Promise<LlamaConfig> => readModelConfig(dir, parseLlamaConfig)

/**
 * Checks a parsed configuration; `name` is used in messages.
 * @param generation parsed generation settings, whose tokens override the configuration's
 * @param generationName name of these settings in messages
 * @throws usage `config.field`, `config.architecture`, `config.heads`, `config.window`, `config.rope`, `config.quantization`, `config.dtype`,
 * `config.token`, `config.bad_words` naming the field, its value and the allowed values
 */
export function parseLlamaConfig(
  value: unknown,
  name: string,
  generation: unknown = {},
  generationName = `the generation settings of ${name}`,
): LlamaConfig {
  expectModelType(value, 'llama', name)
  const parsed = checkFields(schema, value, name)
  const family: Family = families[parsed.model_type]
  const config = withDefaults(parsed, family)
  const settings = checkFields(generationSchema, generation, generationName)
  expectArchitecture(config, family.architecture, name)
  const heads = headsOf(config, name)
  const positions = config.max_position_embeddings
  const context = { name, modelType: config.model_type, headDim: heads.headDim, positions }
  const rotary = parseRotary(config, { ...context, ...family.rotary })
  const biased = family.biases === 'attention_bias' && config.attention_bias === true
  const tokens = tokensOf(config, settings, family, { config: name, settings: generationName })
  return {
    modelType: config.model_type,
    layers: config.num_hidden_layers,
    hidden: config.hidden_size,
    ...heads,
    inner: config.intermediate_size,
    vocab: config.vocab_size,
    positions,
    ...(rotary.type === 'dynamic' && { beyond: beyondDynamic }),
    eps: config.rms_norm_eps,
    tied: config.tie_word_embeddings ?? false,
    qkvBias: biased || family.biases === 'queries, keys and values',
    outputBias: biased,
    qkNorm: family.qkNorm,
    ...windowOf(config, family, name),
    rotary,
    ...(config.rope_interleave === true && { interleaved: true }),
    fusedRows: family.fusedRows,
    quantization: parseQuantization(config.quantization_config ?? config.compression_config, name),
    dtype: dtypeOf(config, name),
    ...tokens,
    banned: bannedTokens(generationName, settings, { ends: tokens.eos, vocab: config.vocab_size }),
  }
}

/** Fields with HF's defaults for missing ones; a null counts as present. */
const withDefaults = (fields: Fields, { defaults }: Family): Fields => ({
  ...fields,
  ...Object.fromEntries(Object.entries(defaults).filter(([field]) => fields[field] === undefined)),
})

function headsOf(config: Fields, name: string): Pick<LlamaConfig, 'heads' | 'kvHeads' | 'headDim'> {
  const { num_attention_heads: heads, hidden_size: hidden } = config
  const kvHeads = config.num_key_value_heads ?? heads
  if (heads % kvHeads !== 0) {
    throw usageError('config.heads', `${name}: num_attention_heads ${heads} is not a multiple of num_key_value_heads ${kvHeads}`)
  }
  const headDim = config.head_dim ?? hidden / heads
  if (Number.isInteger(headDim)) return { heads, kvHeads, headDim }
  throw usageError('config.heads', `${name}: hidden_size ${hidden} is not a multiple of num_attention_heads ${heads}`, {
    hint: 'state head_dim if all heads together do not have hidden_size channels',
  })
}

function windowOf(config: Fields, { window: kind }: Family, name: string): Pick<LlamaConfig, 'window' | 'windowLayers'> {
  const { num_hidden_layers: layers, layer_types: types } = config
  const on = kind === 'every layer' || (kind === 'by layer' && config.use_sliding_window === true)
  const window = on ? (config.sliding_window ?? undefined) : undefined
  const from = kind === 'every layer' ? 0 : config.max_window_layers
  const refused = (what: string, hint?: string) => usageError('config.window', `${name}: ${what}`, { hint })
  if (types != null && types.length !== layers) {
    throw refused(`layer_types has ${types.length} entries, num_hidden_layers is ${layers}`)
  }
  if (kind === 'by layer' && window !== undefined && types == null && from == null) {
    throw refused(`neither max_window_layers nor layer_types states which layers have sliding_window ${window}`)
  }
  const byCount = Array.from({ length: layers }, (_, layer) => window !== undefined && layer >= (from ?? layers))
  const windowLayers = types?.map((type) => type === 'sliding_attention') ?? byCount
  const wrong = windowLayers.findIndex((has, layer) => has !== byCount[layer] && (kind !== 'by layer' || window === undefined))
  if (wrong >= 0) {
    const { sliding_window: size = null, use_sliding_window: used = null } = config
    const what = `layer_types[${wrong}] is ${types?.[wrong]}, which contradicts the model's window`
    throw refused(what, `sliding_window is ${size}, use_sliding_window is ${used}`)
  }
  return windowLayers.includes(true) ? { window, windowLayers } : { window: undefined, windowLayers }
}

function dtypeOf({ dtype, torch_dtype: old }: Fields, name: string): FloatType | undefined {
  if (dtype != null && old != null && dtype !== old) {
    throw usageError('config.dtype', `${name}: dtype is ${dtype} and torch_dtype is ${old}, expected one of them`)
  }
  const stated = dtype ?? old
  return stated == null ? undefined : dtypes[stated]
}

type TokenField = 'bos_token_id' | 'eos_token_id' | 'pad_token_id'

function tokensOf(
  config: Fields,
  settings: GenerationFields,
  family: Family,
  names: { readonly config: string; readonly settings: string },
): Pick<LlamaConfig, 'bos' | 'eos' | 'pad'> {
  const { vocab_size: vocab } = config
  const stated = <K extends TokenField>(field: K) => settings[field] ?? config[field]
  const checked = (field: TokenField, id: number): number =>
    checkToken(settings[field] == null ? names.config : names.settings, field, id, vocab)
  /** Defaults of the model type do not apply if the vocabulary is smaller. */
  const usual = (id: number | undefined): number | undefined => (id !== undefined && id >= 0 && id < vocab ? id : undefined)
  const [bos, eos, pad] = [stated('bos_token_id'), stated('eos_token_id'), stated('pad_token_id')]
  const end = usual(family.eos)
  const list = eos === undefined ? (end === undefined ? [] : [end]) : typeof eos === 'number' ? [eos] : (eos ?? [])
  return {
    bos: bos === undefined ? usual(family.bos) : bos === null ? undefined : checked('bos_token_id', bos),
    eos: [...new Set(list.map((id) => checked('eos_token_id', id)))],
    // No text is padded, so an id outside of the vocabulary, as in checkpoints with older vocabularies, is ignored.
    pad: usual((pad === undefined ? family.pad : pad) ?? undefined),
  }
}
