/** What configurations of models that choose words have in common: their two files, their architecture, and ids of tokens. */
import { join } from 'node:path'
import { z } from 'zod'
import { readConfigFile, readOptionalConfigFile } from '../../checkpoint/config_file.js'
import { shown } from '../../checkpoint/safetensors_header.js'
import { usageError } from '../../errors.js'

/** The id of a token. */
export const token = z.int().nonnegative()

/**
 * Reads `config.json` and, if there is one, `generation_config.json` of a model folder.
 * @throws usage `config.read`, `config.json`, and what `parse` throws
 */
export async function readModelConfig<T>(
  dir: string,
  parse: (value: unknown, name: string, generation: unknown) => T,
): Promise<T> {
  const path = join(dir, 'config.json')
  const value = await readConfigFile(path)
  return parse(value, path, (await readOptionalConfigFile(join(dir, 'generation_config.json'))) ?? {})
}

interface Stated {
  readonly model_type: string
  readonly architectures?: readonly string[] | null | undefined
}

/** @throws usage `config.architecture` for a stated architecture that is not the one of the model type */
export function expectArchitecture({ model_type: type, architectures }: Stated, supported: string, name: string): void {
  const [found = supported] = architectures ?? []
  if (found === supported) return
  throw usageError('config.architecture', `${name}: architecture ${shown(found)} is not supported`, {
    hint: `supported of ${type}: ${supported}`,
  })
}

/** The id that a field states. @throws usage `config.token` */
export function checkToken(name: string, field: string, id: number, vocab: number): number {
  if (id < vocab) return id
  throw usageError('config.token', `${name}: ${field} ${id} is not in [0, ${vocab})`, {
    hint: 'token ids are rows of the embeddings',
  })
}
