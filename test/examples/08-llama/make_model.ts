/** A small LLaMA with random weights, as Hugging Face saves one: `config.json` and `model.safetensors`. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

export const config = {
  model_type: 'llama',
  architectures: ['LlamaForCausalLM'],
  vocab_size: 64,
  hidden_size: 32,
  intermediate_size: 48,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  max_position_embeddings: 64,
  rms_norm_eps: 1e-5,
  hidden_act: 'silu',
  rope_parameters: { rope_type: 'default', rope_theta: 10_000 },
  attention_bias: false,
  mlp_bias: false,
  tie_word_embeddings: false,
  dtype: 'float32',
  bos_token_id: 1,
  eos_token_id: 2,
  pad_token_id: 0,
}

const { hidden_size: hidden, intermediate_size: inner, vocab_size: vocab } = config
const keys = (hidden / config.num_attention_heads) * config.num_key_value_heads

const layer: Readonly<Record<string, readonly number[]>> = {
  'input_layernorm.weight': [hidden],
  'self_attn.q_proj.weight': [hidden, hidden],
  'self_attn.k_proj.weight': [keys, hidden],
  'self_attn.v_proj.weight': [keys, hidden],
  'self_attn.o_proj.weight': [hidden, hidden],
  'post_attention_layernorm.weight': [hidden],
  'mlp.gate_proj.weight': [inner, hidden],
  'mlp.up_proj.weight': [inner, hidden],
  'mlp.down_proj.weight': [hidden, inner],
}
const shapes: Readonly<Record<string, readonly number[]>> = {
  'model.embed_tokens.weight': [vocab, hidden],
  'model.norm.weight': [hidden],
  'lm_head.weight': [vocab, hidden],
  ...Object.fromEntries(
    [0, 1].flatMap((i) => Object.entries(layer).map(([name, shape]) => [`model.layers.${i}.${name}`, shape])),
  ),
}

/** Every tensor by its name. */
export const weights: Readonly<Record<string, Float32Array>> = Object.fromEntries(
  Object.entries(shapes).map(([name, [rows = 1, columns]], seed) => [
    name,
    Float32Array.from({ length: rows * (columns ?? 1) }, (_, i) =>
      columns === undefined ? 1 + Math.sin(i + seed) / 4 : (Math.sin(seed + 1.7 * i + 0.0013 * i * i) * 2) / Math.sqrt(columns),
    ),
  ]),
)

/** Writes the model into a folder that exists. */
export async function makeModel(folder: string): Promise<void> {
  let offset = 0
  const header = Object.fromEntries(
    Object.entries(weights).map(([name, { byteLength }]) => {
      const from = offset
      offset += byteLength
      return [name, { dtype: 'F32', shape: shapes[name], data_offsets: [from, offset] }]
    }),
  )
  const text = Buffer.from(JSON.stringify(header))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(text.length))
  await writeFile(join(folder, 'config.json'), JSON.stringify(config))
  await writeFile(
    join(folder, 'model.safetensors'),
    Buffer.concat([length, text, ...Object.values(weights).map((each) => Buffer.from(each.buffer))]),
  )
}
