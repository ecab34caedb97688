/** Phi-3 of the test data with the tables of longrope, on simt. */
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadLlama } from '../../src/models/llama/llama_pipeline.js'
import type { Llama } from '../../src/models/llama/llama_types.js'
import { folderOf } from './llama_host.js'
import { openSimtKernels } from './simt.js'

/** Uses Phi-3 with other factors for texts of more than the given number of tokens. @param eos ids that end a text, none if it is null */
export async function withLongrope<T>(
  positions: number,
  use: (model: Llama) => Promise<T>,
  eos: readonly number[] | null = null,
): Promise<T> {
  const folder = await longropeFolder(positions, eos)
  try {
    const model = await loadLlama(folder, { rotation: 'float32', ...(await openSimtKernels()) })
    try {
      return await use(model)
    } finally {
      model.release()
    }
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** Writes the model's folder, which the caller removes. */
export async function longropeFolder(positions: number, eos: readonly number[] | null = null): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'heddle-longrope-'))
  const config = JSON.parse(await readFile(join(folderOf('phi3'), 'config.json'), 'utf8'))
  const factors = (of: (k: number) => number) => Array.from({ length: 48 }, (_, k) => of(k))
  const rope = {
    rope_type: 'longrope',
    attention_factor: 1.1,
    short_factor: factors(() => 1),
    long_factor: factors((k) => 2 + k / 8),
  }
  await copyFile(join(folderOf('phi3'), 'model.safetensors'), join(folder, 'model.safetensors'))
  await writeFile(
    join(folder, 'config.json'),
    JSON.stringify({
      ...{ ...config, eos_token_id: eos, original_max_position_embeddings: positions },
      rope_parameters: { ...config.rope_parameters, ...rope },
    }),
  )
  return folder
}
