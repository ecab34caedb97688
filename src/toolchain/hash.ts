/** Content hashes, the keys of cache entries. File times are not part of them. */
import { createHash } from 'node:crypto'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'

export const sha256 = (content: string | Uint8Array): string => createHash('sha256').update(content).digest('hex')

const known = new Map<string, string>()

/** Hash of a file, cached while the file's state is unchanged; undefined if it cannot be read. For large files that are hashed often. */
export async function fileDigest(path: string): Promise<string | undefined> {
  try {
    const { dev, ino, size, mtimeMs, ctimeMs } = await stat(path)
    const key = [path, dev, ino, size, mtimeMs, ctimeMs].join()
    const digest = known.get(key) ?? sha256(await readFile(path))
    known.set(key, digest)
    return digest
  } catch {
    return undefined
  }
}

type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json }

/** JSON with object keys sorted, so that equal values have equal text. */
export function canonicalJson(value: Json): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  const entries = Object.entries(value as { readonly [key: string]: Json }).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`).join(',')}}`
}

/** Files below `folder`, relative and sorted, except in folders named in `skip`. */
export async function listFiles(folder: string, skip: readonly string[] = []): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true })
  const nested = await Promise.all(
    entries.map(async (entry) => {
      if (!entry.isDirectory()) return [entry.name]
      if (skip.includes(entry.name)) return []
      return (await listFiles(join(folder, entry.name), skip)).map((name) => `${entry.name}/${name}`)
    }),
  )
  return nested.flat().sort()
}

/** Hash of every file below `folder`, by relative path. */
export async function hashTree(folder: string, skip: readonly string[] = []): Promise<Record<string, string>> {
  const files = await listFiles(folder, skip)
  return Object.fromEntries(await Promise.all(files.map(async (name) => [name, sha256(await readFile(join(folder, name)))])))
}
