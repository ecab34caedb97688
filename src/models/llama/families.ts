/** The model types that are LLaMA with other numbers: what sets them apart, in one table. */
import { type RotaryChoices, rotaryTypes } from './rotary_fields.js'

/** What sets the model types apart, and what HF takes for fields that a file leaves out. */
export interface Family {
  readonly architecture: string
  /** Fields that must be stated: HF's default is one model's number. */
  readonly stated: readonly string[]
  readonly biases: 'attention_bias' | 'queries, keys and values' | 'none'
  readonly qkNorm: boolean
  readonly window: 'none' | 'every layer' | 'by layer'
  readonly fusedRows: boolean
  readonly rotary: RotaryChoices
  readonly bos?: number
  readonly eos?: number
  readonly pad?: number
}

/** What most have. */
const usual = {
  stated: ['num_key_value_heads'],
  biases: 'none',
  qkNorm: false,
  window: 'by layer',
  fusedRows: false,
  rotary: { types: rotaryTypes, partial: false },
} as const satisfies Partial<Family>

export const families = {
  llama: {
    ...usual,
    architecture: 'LlamaForCausalLM',
    // The first LLaMA's files are older than the field.
    rotary: { ...usual.rotary, theta: 10_000 },
    ...{ stated: [], biases: 'attention_bias', window: 'none', bos: 1, eos: 2 },
  },
  mistral: {
    ...usual,
    architecture: 'MistralForCausalLM',
    ...{ stated: ['num_key_value_heads', 'sliding_window'], window: 'every layer', bos: 1, eos: 2 },
  },
  qwen2: { ...usual, architecture: 'Qwen2ForCausalLM', biases: 'queries, keys and values' },
  qwen3: {
    ...usual,
    architecture: 'Qwen3ForCausalLM',
    ...{ stated: ['num_key_value_heads', 'head_dim'], biases: 'attention_bias', qkNorm: true },
  },
  phi3: {
    ...usual,
    architecture: 'Phi3ForCausalLM',
    rotary: { types: ['default', 'longrope'], partial: true },
    ...{ stated: ['sliding_window'], window: 'every layer', fusedRows: true, bos: 1, eos: 32_000, pad: 32_000 },
  },
} as const satisfies Readonly<Record<string, Family>>

export type LlamaType = keyof typeof families

/** Whether a configuration's model type is one of these. */
export const isLlamaType = (modelType: unknown): modelType is LlamaType =>
  typeof modelType === 'string' && Object.hasOwn(families, modelType)
