/** Configurations of small LLaMA-like models, one per type, in the format of transformers 5, and matching checkpoints. */

import type { Checkpoint } from '../../src/checkpoint/checkpoint.js'
import type { StoredTensor } from '../../src/checkpoint/safetensors.js'
import { parseLlamaConfig } from '../../src/models/llama/config.js'
import { llamaTensors } from '../../src/models/llama/tensor_names.js'
import { encode } from '../../src/runtime/buffer.js'

const numbers = {
  vocab_size: 96,
  hidden_size: 48,
  intermediate_size: 40,
  num_hidden_layers: 2,
  num_attention_heads: 6,
  num_key_value_heads: 2,
  max_position_embeddings: 256,
  rms_norm_eps: 1e-6,
  hidden_act: 'silu',
  rope_parameters: { rope_type: 'default', rope_theta: 10_000 },
  tie_word_embeddings: false,
  dtype: 'bfloat16',
  bos_token_id: 1,
  eos_token_id: 2,
  pad_token_id: 0,
}

export const smallLlama = {
  ...numbers,
  model_type: 'llama',
  architectures: ['LlamaForCausalLM'],
  attention_bias: false,
  mlp_bias: false,
}
export const smallMistral = { ...numbers, model_type: 'mistral', architectures: ['MistralForCausalLM'], sliding_window: 16 }
const byLayer = { use_sliding_window: false, sliding_window: null, max_window_layers: 28 }
export const smallQwen2 = { ...numbers, ...byLayer, model_type: 'qwen2', architectures: ['Qwen2ForCausalLM'] }
export const smallQwen3 = {
  ...{ ...numbers, ...byLayer, model_type: 'qwen3', architectures: ['Qwen3ForCausalLM'] },
  ...{ head_dim: 16, attention_bias: false },
}
export const smallPhi3 = {
  ...{ ...numbers, model_type: 'phi3', architectures: ['Phi3ForCausalLM'], sliding_window: null },
  original_max_position_embeddings: 256,
}

export const allSmall = { llama: smallLlama, mistral: smallMistral, qwen2: smallQwen2, qwen3: smallQwen3, phi3: smallPhi3 }

/** The configuration of `compressed-tensors` for int8 weights per channel and activations per token. */
export const w8a8 = {
  quant_method: 'compressed-tensors',
  format: 'int-quantized',
  quantization_status: 'compressed',
  config_groups: {
    group_0: {
      targets: ['Linear'],
      weights: {
        ...{ num_bits: 8, type: 'int', symmetric: true, strategy: 'channel', dynamic: false, group_size: null, actorder: null },
        ...{ block_structure: null, observer: 'minmax', observer_kwargs: {} },
      },
      input_activations: {
        ...{ num_bits: 8, type: 'int', symmetric: true, strategy: 'token', dynamic: true, group_size: null, actorder: null },
        ...{ block_structure: null, observer: null, observer_kwargs: {} },
      },
      output_activations: null,
    },
  },
  ignore: ['lm_head'],
  kv_cache_scheme: null,
  global_compression_ratio: 1.5,
}

/** The same of int8 weights alone: as its integers are stored, and four of them to an int32, as most files of this scheme have them. */
export const w8a16 = {
  ...w8a8,
  config_groups: { group_0: { ...w8a8.config_groups.group_0, input_activations: null } },
}
export const packedW8a16 = { ...w8a16, format: 'pack-quantized' }

/** A packed checkpoint of int8 weights: four columns are one int32, each with 128 added. */
export function packed(file: { readonly tensors: Map<string, StoredTensor> }): void {
  for (const [name, { dtype, shape, data }] of [...file.tensors]) {
    if (dtype !== 'I8') continue
    const [rows = 0, columns = 0] = shape
    const words = Int32Array.from({ length: data.length / 4 }, (_, word) =>
      [0, 1, 2, 3].reduce((sum, at) => sum | (((((data[4 * word + at] ?? 0) << 24) >> 24) + 128) << (8 * at)), 0),
    )
    file.tensors.delete(name)
    file.tensors.set(`${name}_packed`, { dtype: 'I32', shape: [rows, columns / 4], data: new Uint8Array(words.buffer) })
    const size = new BigInt64Array([BigInt(rows), BigInt(columns)])
    file.tensors.set(`${name}_shape`, { dtype: 'I64', shape: [2], data: new Uint8Array(size.buffer) })
  }
}

/** A checkpoint of int8 weights: value `i` of one is `i` modulo 255, less 127, and the scale of its row `r` is (r + 1) / 64. */
export function int8Checkpoint(config: Record<string, unknown>): { readonly tensors: Map<string, StoredTensor> } & Checkpoint {
  const file = smallCheckpoint(config)
  for (const [name, { shape }] of file.tensors) {
    if (!/_proj\.weight$/.test(name)) continue
    const [rows = 0, columns = 0] = shape
    const values = Int8Array.from({ length: rows * columns }, (_, i) => (i % 255) - 127)
    const steps = Float32Array.from({ length: rows }, (_, row) => (row + 1) / 64)
    file.tensors.set(name, { dtype: 'I8', shape, data: new Uint8Array(values.buffer) })
    file.tensors.set(`${name}_scale`, { dtype: 'BF16', shape: [rows, 1], data: encode('bf16', steps) })
  }
  return file
}

/** A checkpoint that has every tensor of a configuration, as float32; value `i` of a tensor is `i` plus its number in the checkpoint / 1000. */
export function smallCheckpoint(config: Record<string, unknown>): { readonly tensors: Map<string, StoredTensor> } & Checkpoint {
  const all = Object.values(llamaTensors(parseLlamaConfig(config, 'config.json')))
  const shapes = new Map(all.map(({ name, shape }) => [name === 'lm_head.weight' ? name : `model.${name}`, shape]))
  const tensors = [...shapes].map(([name, shape], number): [string, StoredTensor] => {
    const count = shape.reduce((product, extent) => product * extent, 1)
    const values = Float32Array.from({ length: count }, (_, i) => i + number / 1000)
    return [name, { dtype: 'F32', shape, data: new Uint8Array(values.buffer) }]
  })
  return { tensors: new Map(tensors) }
}
