/**
 * Checkpoints in several files: `model.safetensors.index.json` names the file of each tensor. Index and files must agree on every tensor, so that the
 * loaded tensors are those that the index describes.
 */
import { join } from 'node:path'
import { usageError } from '../errors.js'
import { isMissing, type Refusal, readText } from '../files.js'
import { duplicateKey } from './duplicate_key.js'
import { type FileTensor, openSafetensors, type SafetensorsFile } from './safetensors.js'
import { shown } from './safetensors_header.js'

export const indexFile = 'model.safetensors.index.json'

const refusal: Refusal = { code: 'checkpoint.index' }

/** Names of files next to the index: an index cannot refer to files outside its folder. */
const shardName = /^[^/\\\0]+\.safetensors$/

/** The file of each tensor. Sizes in the index are ignored: files have their own, and writers disagree about the index's. */
function parseIndex(text: string, path: string): ReadonlyMap<string, string> {
  const refuse = (what: string, cause?: unknown) => usageError('checkpoint.index', `${path}: ${what}`, { cause })
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw refuse('is not JSON', cause)
  }
  const twice = duplicateKey(text)
  if (twice !== undefined) throw refuse(`names ${shown(twice)} twice`)
  const { weight_map: map } = isObject(value) ? value : {}
  if (!isObject(map)) throw refuse('has no weight_map, the file of each tensor')
  const files = new Map<string, string>()
  for (const [tensor, file] of Object.entries(map)) {
    if (typeof file !== 'string' || !shardName.test(file)) {
      throw refuse(
        `tensor ${shown(tensor)} is in ${shown(JSON.stringify(file))}, expected the name of a .safetensors file beside the index`,
      )
    }
    files.set(tensor, file)
  }
  return files
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Opens every file that the index of a folder names.
 * @throws usage `checkpoint.index` for an invalid index, `checkpoint.shard` if index and files disagree, and what `openSafetensors` throws
 */
export async function openShards(dir: string, signal?: AbortSignal): Promise<SafetensorsFile> {
  const path = join(dir, indexFile)
  const files = parseIndex(await readText(path, refusal, { signal }), path)
  const tensors = new Map<string, FileTensor>()
  const foundIn = new Map<string, string>()
  for (const name of [...new Set(files.values())].sort()) {
    const shard = await openSafetensors(join(dir, name), signal).catch((error: unknown) => {
      if (!isMissing(error)) throw error
      const what = `${path} names ${shown(name)}, and there is no such file beside it`
      throw usageError('safetensors.read', what, { hint: 'download all files of the model', cause: error })
    })
    for (const [tensor, stored] of shard.tensors) {
      const other = foundIn.get(tensor)
      const named = files.get(tensor)
      if (other !== undefined) throw disagree(path, tensor, `is in ${other} and in ${name}`)
      if (named === undefined) throw disagree(path, tensor, `is in ${name}, the index does not name it`)
      if (named !== name) throw disagree(path, tensor, `is in ${name}, the index names ${named}`)
      foundIn.set(tensor, name)
      tensors.set(tensor, stored)
    }
  }
  for (const [tensor, file] of files) if (!tensors.has(tensor)) throw disagree(path, tensor, `is not in ${file}`)
  return { tensors, metadata: {} }
}

const hint = 'the files may come from different downloads'

const disagree = (path: string, tensor: string, what: string) =>
  usageError('checkpoint.shard', `${path}: tensor ${shown(tensor)} ${what}`, { hint })
