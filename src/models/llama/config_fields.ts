/** Schemas of a LLaMA-like model's `config.json` and `generation_config.json`. */
import { z } from 'zod'
import { epsilon, keysOf, size } from '../../checkpoint/config_file.js'
import type { FloatType } from '../../checkpoint/convert.js'
import { bannedFields, token } from '../parts/config_checks.js'
import { families } from './families.js'
import { rotaryFields } from './rotary_fields.js'

/** Weight types by HF's names. */
export const dtypes = {
  float32: 'f32',
  float16: 'f16',
  bfloat16: 'bf16',
} as const satisfies Readonly<Record<string, FloatType>>

const ends = z.union([token, z.array(token).max(1024)])
/** Larger than in any model; bounds the work per layer before the checkpoint is known. */
const layerCount = size.max(4096)
/** Type names as written by HF, and as printed by PyTorch. */
const dtypeField = z.preprocess(
  (stated) => (typeof stated === 'string' ? stated.replace(/^torch\./, '') : stated),
  z.enum(keysOf(dtypes)).nullish(),
)

/** Early conversions of LLaMA state -1 if they have no padding token; nothing uses it. */
const padField = z.int().nullish()

export const schema = z.looseObject({
  model_type: z.enum(keysOf(families)),
  architectures: z.array(z.string()).min(1).nullish(),
  vocab_size: size,
  hidden_size: size,
  intermediate_size: size,
  num_hidden_layers: layerCount,
  num_attention_heads: size,
  num_key_value_heads: size.nullish(),
  head_dim: size.nullish(),
  max_position_embeddings: size,
  rms_norm_eps: epsilon,
  hidden_act: z.enum(['silu', 'swish']).optional(),
  attention_bias: z.boolean().nullish(),
  mlp_bias: z.literal(false).nullish(),
  tie_word_embeddings: z.boolean().nullish(),
  ...rotaryFields,
  /** True if channels 2k and 2k + 1 of a head are rotated together, as in Meta's files; a field of DeepSeek's configurations. */
  rope_interleave: z.boolean().nullish(),
  sliding_window: size.nullish(),
  use_sliding_window: z.boolean().nullish(),
  max_window_layers: z.int().nonnegative().nullish(),
  layer_types: z
    .array(z.enum(['full_attention', 'sliding_attention']))
    .max(4096)
    .nullish(),
  dtype: dtypeField,
  torch_dtype: dtypeField,
  bos_token_id: token.nullish(),
  eos_token_id: ends.nullish(),
  pad_token_id: padField,
})

export type Fields = z.output<typeof schema>

/** Fields of the generation settings: those that override the configuration, and those that only they have. */
export const generationSchema = schema.pick({ bos_token_id: true, eos_token_id: true, pad_token_id: true }).extend(bannedFields)

export type GenerationFields = z.output<typeof generationSchema>
