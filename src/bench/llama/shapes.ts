/** Configurations of LLaMA-like models by name, in HF's form, for timing without files. */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { usageError } from '../../errors.js'
import { type LlamaConfig, parseLlamaConfig, readLlamaConfig } from '../../models/llama/config.js'

const common = { model_type: 'llama', hidden_act: 'silu', rms_norm_eps: 1e-5 }
/** LLaMA 3.1 and 3.2 scale rotary frequencies beyond the first 8,192 positions. */
const third = {
  ...{ ...common, vocab_size: 128_256, max_position_embeddings: 131_072, rope_theta: 500_000, num_key_value_heads: 8 },
  torch_dtype: 'bfloat16',
}
const scaling = { rope_type: 'llama3', low_freq_factor: 1, high_freq_factor: 4, original_max_position_embeddings: 8192 }

const named: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  '7b': {
    ...{ ...common, vocab_size: 32_000, max_position_embeddings: 4096, torch_dtype: 'float16' },
    ...{ hidden_size: 4096, num_hidden_layers: 32, num_attention_heads: 32, intermediate_size: 11_008 },
  },
  '8b': {
    ...{ ...third, rope_scaling: { ...scaling, factor: 8 } },
    ...{ hidden_size: 4096, num_hidden_layers: 32, num_attention_heads: 32, intermediate_size: 14_336 },
  },
  '1b': {
    ...{ ...third, rope_scaling: { ...scaling, factor: 32 }, tie_word_embeddings: true },
    ...{ hidden_size: 2048, num_hidden_layers: 16, num_attention_heads: 32, intermediate_size: 8192 },
  },
}

export const llamaShapes: readonly string[] = Object.keys(named)

/**
 * Configuration of a name, or of a model folder below `root`. It has no end tokens, so that no text ends before the timed steps.
 * @throws usage `bench.config` for neither, and errors of `readLlamaConfig`
 */
export async function benchLlamaConfig(nameOrDir: string, root: string): Promise<LlamaConfig> {
  const known = Object.hasOwn(named, nameOrDir) ? named[nameOrDir] : undefined
  if (known !== undefined) return { ...parseLlamaConfig(known, nameOrDir), eos: [] }
  const folder = resolve(root, nameOrDir)
  if (existsSync(join(folder, 'config.json'))) return { ...(await readLlamaConfig(folder)), eos: [] }
  throw usageError('bench.config', `${nameOrDir} is neither a known shape nor a folder with config.json`, {
    hint: `known: ${llamaShapes.join(', ')}`,
  })
}
