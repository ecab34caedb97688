/** A small LLaMA that reads and writes text: random weights, and a real tokenizer with its template. */
import { copyFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { formatSafetensors } from '../../src/checkpoint/safetensors.js'
import { noise } from './fixtures.js'
import { smallCheckpoint, smallLlama } from './llama_fixtures.js'
import { kjvGqa } from './text_fixtures.js'

export const textConfig = { ...smallLlama, vocab_size: 2048, max_position_embeddings: 512, eos_token_id: 2 }

/** Initial weights of a model: random, and norms of ones. */
export function randomModel() {
  const { tensors } = smallCheckpoint(textConfig)
  const next = noise(7)
  for (const { shape, data } of tensors.values()) {
    const values = new Float32Array(data.buffer)
    for (const [i] of values.entries()) values[i] = shape.length === 1 ? 1 : next() * 0.4
  }
  return tensors
}

/** Writes it into an existing folder. */
export async function writeTextModel(folder: string): Promise<void> {
  await writeFile(join(folder, 'config.json'), JSON.stringify(textConfig))
  await writeFile(join(folder, 'model.safetensors'), formatSafetensors(randomModel()))
  for (const file of ['tokenizer.json', 'tokenizer_config.json', 'chat_template.jinja'])
    await copyFile(join(kjvGqa, file), join(folder, file))
}
