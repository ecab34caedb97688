/**
 * GGUF models in several files, as written by llama.cpp's `gguf-split`: `name-00001-of-00003.gguf` and so on. Each file has its number (`split.no`,
 * from 0) and their count (`split.count`) in its metadata. The first has the model's metadata; any of them may hold tensors.
 */
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { basename, dirname, extname, join } from 'node:path'
import { usageError } from '../errors.js'
import { type Gguf, openGguf } from './gguf.js'
import type { FileTensor } from './safetensors.js'
import { shown } from './safetensors_header.js'

/** True if a path ends as the name of a GGUF file does. */
export const isGgufName = (path: string): boolean => extname(path).toLowerCase() === '.gguf'

const partName = /^(.*)-(\d{5})-of-(\d{5})(\.gguf)$/i
/** File names have five digits for the number. */
const mostParts = 99_999

interface Split {
  /** Counted from 0. */
  readonly number: number
  readonly count: number
}

/**
 * Opens a model in one file or in several. The path of any part opens all parts.
 * @throws usage `gguf.part` for parts that are missing or do not belong together, and what `openGguf` throws
 */
export async function openGgufModel(path: string, signal?: AbortSignal): Promise<Gguf> {
  const file = await openGguf(path, signal)
  const split = splitOf(file, basename(path))
  if (split === undefined) return file
  const paths = pathsOf(path, split)
  expectAll(paths)
  const parts: Gguf[] = []
  for (const [number, part] of paths.entries()) {
    const opened = part === path ? file : await openGguf(part, signal)
    const found = splitOf(opened, basename(part))
    if (found?.number !== number || found.count !== split.count) {
      throw usageError('gguf.part', `${part} ${partText(found)}, expected part ${number + 1} of ${split.count}`, { hint })
    }
    parts.push(opened)
  }
  return joined(parts, paths)
}

const hint = 'the files may come from different downloads'

const partText = (split: Split | undefined): string =>
  split === undefined ? 'is a whole file' : `is part ${split.number + 1} of ${split.count}`

/** Number of a file among the parts of a model; undefined for a whole model. @throws usage `gguf.part` */
function splitOf({ metadata }: Gguf, name: string): Split | undefined {
  const count = metadata.get('split.count') ?? 1
  const number = metadata.get('split.no') ?? 0
  if (count === 0 || count === 1) return undefined
  const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isInteger(value) && value >= 0
  if (isNumber(count) && isNumber(number) && number < count && count <= mostParts) return { number, count }
  const text = `split.no is ${shown(JSON.stringify(number))}, and split.count is ${shown(JSON.stringify(count))}`
  throw usageError('gguf.part', `${name}: ${text}, expected a number below a count of at most ${mostParts}`)
}

const five = (value: number): string => String(value).padStart(5, '0')

/** Paths of all parts, from the path of one. @throws usage `gguf.part` for a name without the part's number */
function pathsOf(path: string, { number, count }: Split): readonly string[] {
  const [, stem, , , end = '.gguf'] = partName.exec(basename(path)) ?? []
  const nameOf = (name: string, part: number): string => `${name}-${five(part + 1)}-of-${five(count)}${end}`
  if (stem === undefined || basename(path) !== nameOf(stem, number)) {
    const ending = `-${five(number + 1)}-of-${five(count)}.gguf`
    throw usageError('gguf.part', `${path} is part ${number + 1} of ${count}, expected a name that ends in ${ending}`, {
      hint: 'the other parts are found by their names: give all of them their original names',
    })
  }
  return Array.from({ length: count }, (_, part) => (part === number ? path : join(dirname(path), nameOf(stem, part))))
}

/** @throws usage `gguf.part` with the missing parts */
function expectAll(paths: readonly string[]): void {
  const missing = paths.filter((part) => !existsSync(part))
  const [first] = missing
  if (first === undefined) return
  const more = missing.length > 1 ? `, and ${missing.length - 1} more of its ${paths.length} parts` : ''
  throw usageError('gguf.part', `there is no ${first}${more}`, { hint: 'download all parts of the model into one folder' })
}

/** @throws usage `gguf.part` for a tensor in two parts, and for a number of tensors other than the first part states */
function joined(parts: readonly Gguf[], paths: readonly string[]): Gguf {
  const tensors = new Map<string, FileTensor>()
  for (const [number, part] of parts.entries()) {
    for (const [name, tensor] of part.tensors) {
      if (!tensors.has(name)) tensors.set(name, tensor)
      else throw usageError('gguf.part', `${paths[number]}: tensor ${shown(name)} is in another part too`, { hint })
    }
  }
  const metadata = parts[0]?.metadata ?? new Map()
  const stated = metadata.get('split.tensors.count') ?? tensors.size
  if (stated === tensors.size) return { metadata, tensors }
  const counts = `split.tensors.count is ${shown(JSON.stringify(stated))}, and the parts have ${tensors.size} tensors`
  throw usageError('gguf.part', `${paths[0]}: ${counts}`, { hint })
}

/**
 * The GGUF file of a path: the path itself, or the only model of a folder without `config.json`. Undefined if there is none.
 * @throws usage `gguf.read` for a folder with several models, which the message lists
 */
export async function ggufPath(path: string): Promise<string | undefined> {
  if (isGgufName(path)) return path
  if (existsSync(join(path, 'config.json'))) return undefined
  const names = (await readdir(path).catch((): string[] => [])).filter(isGgufName).sort()
  // A model in parts is listed by the name of its first part.
  const models = new Map(names.toReversed().map((name) => [name.replace(partName, '$1-of-$3'), name]))
  const [first, second] = [...models.values()].sort()
  if (first === undefined || second === undefined) return first === undefined ? undefined : join(path, first)
  const listed = [...models.values()].sort().slice(0, 4)
  const all = `${listed.map(shown).join(', ')}${models.size > 4 ? ', ...' : ''}`
  throw usageError('gguf.read', `${path} has ${models.size} models: ${all}`, {
    hint: `pass one of them, such as ${join(path, first)}`,
  })
}
