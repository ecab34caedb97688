/** Table of the differences between LLaMA-like model types. */
import { type RotaryChoices, rotaryTypes } from './rotary_fields.js'

type SizeField = 'num_key_value_heads' | 'head_dim' | 'sliding_window' | 'max_window_layers'

/** Properties of a model type, and HF's defaults for missing fields. */
export interface Family {
  readonly architecture: string
  /** HF's defaults for missing sizes (configuration_mistral.py, configuration_qwen2.py, ...). A null in a file means there is none. */
  readonly defaults: Readonly<Partial<Record<SizeField, number>>>
  readonly biases: 'attention_bias' | 'queries, keys and values' | 'none'
  readonly qkNorm: boolean
  readonly window: 'none' | 'every layer' | 'by layer'
  readonly fusedRows: boolean
  readonly rotary: RotaryChoices
  readonly bos?: number
  readonly eos?: number
  readonly pad?: number
}

/** Properties that most types share. */
const usual = {
  defaults: {},
  biases: 'none',
  qkNorm: false,
  window: 'by layer',
  fusedRows: false,
  rotary: { types: rotaryTypes, theta: 10_000, partial: false },
} as const satisfies Partial<Family>

/** Defaults of the Qwen types. */
const windows = { num_key_value_heads: 32, sliding_window: 4096, max_window_layers: 28 }

export const families = {
  llama: {
    ...usual,
    architecture: 'LlamaForCausalLM',
    ...{ biases: 'attention_bias', window: 'none', bos: 1, eos: 2 },
  },
  mistral: {
    ...usual,
    architecture: 'MistralForCausalLM',
    ...{ defaults: { num_key_value_heads: 8, sliding_window: 4096 }, window: 'every layer', bos: 1, eos: 2 },
  },
  qwen2: { ...usual, architecture: 'Qwen2ForCausalLM', biases: 'queries, keys and values', defaults: windows },
  qwen3: {
    ...usual,
    architecture: 'Qwen3ForCausalLM',
    ...{ defaults: { ...windows, head_dim: 128 }, biases: 'attention_bias', qkNorm: true },
  },
  phi3: {
    ...usual,
    architecture: 'Phi3ForCausalLM',
    rotary: { ...usual.rotary, types: ['default', 'longrope'], partial: true },
    ...{ window: 'every layer', fusedRows: true, bos: 1, eos: 32_000, pad: 32_000 },
  },
} as const satisfies Readonly<Record<string, Family>>

export type LlamaType = keyof typeof families

/** True if a configuration's model type is one of these. */
export const isLlamaType = (modelType: unknown): modelType is LlamaType =>
  typeof modelType === 'string' && Object.hasOwn(families, modelType)
