/**
 * Headers on which a generated file depends, found by following `#include "..."` through the given folders. Conditional includes are always
 * followed: a key that covers too much costs one compilation, a key that covers too little costs a wrong result.
 */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { sha256 } from './hash.js'

const include = /^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"/gm

/** Digest and quoted includes of each header, read once per build. */
export type HeaderCache = Map<string, Promise<{ readonly digest: string; readonly includes: readonly string[] }>>

const quoted = (text: string): string[] => [...text.matchAll(include)].map((match) => match[1] ?? '')

function load(path: string, cache: HeaderCache): Promise<{ readonly digest: string; readonly includes: readonly string[] }> {
  const known = cache.get(path)
  if (known !== undefined) return known
  const loading = readFile(path, 'utf8').then((text) => ({
    digest: sha256(text.replaceAll('\r\n', '\n')),
    includes: quoted(text),
  }))
  cache.set(path, loading)
  return loading
}

/** A header that a source file reaches. */
interface Reached {
  /** Name of its first include. */
  readonly name: string
  readonly path: string
  readonly digest: string
}

/** All headers that `text` reaches. Names found in no folder are the toolkit's own. */
export async function reachedHeaders(
  text: string,
  folders: readonly string[],
  cache: HeaderCache = new Map(),
): Promise<readonly Reached[]> {
  const found: Reached[] = []
  const seen = new Set<string>()
  const visit = async (name: string, beside: string | undefined): Promise<void> => {
    const candidates = beside === undefined ? folders : [beside, ...folders]
    const path = candidates.map((folder) => join(folder, name)).find((candidate) => existsSync(candidate))
    if (path === undefined || seen.has(path)) return
    seen.add(path)
    const header = await load(path, cache)
    found.push({ name, path, digest: header.digest })
    for (const next of header.includes) await visit(next, dirname(path))
  }
  for (const name of quoted(text)) await visit(name, undefined)
  return found
}

/** Digests of all headers that `text` reaches, by the name of their first include. */
export const headerDigests = async (
  text: string,
  folders: readonly string[],
  cache: HeaderCache = new Map(),
): Promise<Record<string, string>> =>
  Object.fromEntries((await reachedHeaders(text, folders, cache)).map(({ name, digest }) => [name, digest]))
