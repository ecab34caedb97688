/**
 * Folders that hold something other than a model as Hugging Face saves it, recognised by their files. Errors say which kind of folder it is, and the
 * remedy.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { usageError } from '../errors.js'

/**
 * Refuses the folder of an adapter, as PEFT saves it. Hugging Face opens the model that the adapter names, and ignores the folder's other files.
 * @throws usage `weights.adapter`
 */
export function expectNoAdapter(dir: string): void {
  if (!existsSync(join(dir, 'adapter_config.json'))) return
  throw usageError('weights.adapter', `${dir} holds an adapter (adapter_config.json), and adapters are not read`, {
    hint: 'merge it into its model, and save that: merge_and_unload() of PEFT, then save_pretrained()',
  })
}

const usualHint = 'expected a model folder with config.json, model.safetensors and tokenizer.json'

/** Files that other folders have instead of `config.json`, with a hint for each. */
const others: readonly (readonly [string, string])[] = [
  ['params.json', 'params.json is of the format that the authors of LLaMA and Mistral publish: use the one of Hugging Face'],
  ['0_Transformer', 'the model of this sentence embedder is in its folder 0_Transformer: pass that folder'],
]

/** Hint for a folder without `config.json`. */
export const hintWithoutConfig = (dir: string): string => others.find(([file]) => existsSync(join(dir, file)))?.[1] ?? usualHint
