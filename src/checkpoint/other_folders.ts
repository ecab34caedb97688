/** Folders that hold something else than a model as HF saves it, by the files that are in them: what they are is said, and what to do. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { usageError } from '../errors.js'

/**
 * Refuses a folder of an adapter, as PEFT saves it. HF opens the model that the adapter names, and not what else is in the folder.
 * @throws usage `weights.adapter`
 */
export function expectNoAdapter(dir: string): void {
  if (!existsSync(join(dir, 'adapter_config.json'))) return
  throw usageError('weights.adapter', `${dir} holds an adapter (adapter_config.json), and adapters are not read`, {
    hint: 'merge it into its model, and save that: merge_and_unload() of PEFT, then save_pretrained()',
  })
}

const usualHint = 'a model folder holds config.json, model.safetensors and tokenizer.json'

/** What other folders hold instead of `config.json`, and where it is. */
const others: readonly (readonly [string, string])[] = [
  ['params.json', 'params.json is of the format that the authors of LLaMA and Mistral publish: use the one of Hugging Face'],
  ['0_Transformer', 'the model of this sentence embedder is in its folder 0_Transformer: name that'],
]

/** The hint for a folder without `config.json`. */
export const hintWithoutConfig = (dir: string): string => others.find(([file]) => existsSync(join(dir, file)))?.[1] ?? usualHint
