/**
 * Output folders of a verb, such as an export or a reproduction. `heddle-files.json` in each lists the files that heddle wrote, with digests. The
 * list is written before the files, so that files of a killed process are not mistaken for foreign files.
 */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, readdir, readFile, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { z } from 'zod'
import {
  asCommitted,
  type Content,
  changeFolder,
  compareFolder,
  type Difference,
  expectApart,
  expectEmpty,
  type Files,
  type Ownership,
  type Place,
  refuseForeign,
  removeFiles,
  writeWhole,
} from './output.js'
import { isAlive } from './scratch.js'
import { writing } from './writing.js'

/** Content of a file, or a function that writes it to a path, for content too large for memory. */
export type Made = string | Uint8Array | ((path: string) => Promise<void>)

/** Name of the list in a folder. */
export const listFile = 'heddle-files.json'

const below = z.string().regex(/^(?!.*(^|\/)\.\.(\/|$))[^/\\\0][^\\\0]*$/)
const listSchema = z.strictObject({
  version: z.literal(1),
  /** Digests of each file; two while one content replaces the other. */
  files: z.record(below, z.array(z.string().regex(/^[0-9a-f]{64}$/)).min(1)),
})

type List = z.infer<typeof listSchema>['files']

/**
 * Updates a folder to the given files and lists them there. Unchanged files are not touched. Files of the previous list that are no longer
 * wanted are removed. Files that are not in the list, or were edited since, stay.
 * @returns the paths that were written or removed, sorted
 * @throws usage `output.folder` for a foreign folder, `output.file` for edited files; errors of `changeFolder` and of making a file
 */
export async function writeListed(dir: string, files: Files<Made>, place: Place): Promise<readonly string[]> {
  const list = await expectListed(dir, place)
  const owned = listedOwnership(list)
  const first = await compareFolder(dir, new Map([...files].map(([path, made]) => [path, unlessMade(made)])), owned)
  refuseForeign(dir, first.foreign)
  const staged = new Map<string, string>()
  try {
    // Marks the folder as heddle's before making files, in case the process is killed.
    if (list === undefined) await writeList(dir, {})
    const contents = await stage(dir, files, staged)
    const digests = await digestsOf(contents)
    const difference = withoutSame(first, digests, await digestsIn(dir, first.differing, staged))
    const { missing, differing, stale } = difference
    const changed = [...missing, ...differing, ...stale].sort()
    if (changed.length > 0) {
      await writeList(dir, merged(list, digests))
      await changeFolder(dir, contents, difference)
    }
    // Edited files that are no longer wanted now belong to the user.
    const now = merged({}, digests)
    if (JSON.stringify(now) !== JSON.stringify(list)) await writeList(dir, now)
    return changed
  } catch (error) {
    if (list === undefined) await removeFiles(dir, [listFile]).catch(() => undefined)
    throw error
  } finally {
    for (const path of staged.values()) await rm(path, { force: true })
  }
}

/** List of a folder that heddle wrote; undefined if it is empty or does not exist. @throws usage `output.folder` for any other */
export async function expectListed(dir: string, place: Place): Promise<List | undefined> {
  await expectApart(dir, place)
  const text = await readFile(join(dir, listFile), 'utf8').catch(() => undefined)
  const list = text === undefined ? undefined : listSchema.safeParse(parsed(text)).data?.files
  if (list === undefined) await expectEmpty(dir)
  return list
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const listedOwnership = (list: List = {}): Ownership => ({
  paths: Object.keys(list),
  wrote: async (path, file) => {
    const digests = Object.hasOwn(list, path) ? list[path] : undefined
    return digests?.includes(await digestOfFile(file)) ?? false
  },
})

const unlessMade = (made: Made): Content | 'unknown' => (typeof made === 'function' ? 'unknown' : made)

/** Makes files that are not in memory, next to their final paths. @param staged receives the temporary paths */
async function stage(dir: string, files: Files<Made>, staged: Map<string, string>): Promise<Files> {
  const contents = new Map<string, Content>()
  for (const [path, made] of files) {
    if (typeof made !== 'function') {
      contents.set(path, made)
      continue
    }
    const file = join(dir, `${path}.${process.pid}.tmp`)
    staged.set(path, file)
    await writing(file, () => mkdir(dirname(file), { recursive: true }))
    await removeLeft(join(dir, path))
    await made(file)
    contents.set(path, { staged: file })
  }
  return contents
}

/** Removes temporary files of a file that killed processes left. */
async function removeLeft(file: string): Promise<void> {
  for (const name of await readdir(dirname(file))) {
    const pid = name.startsWith(`${basename(file)}.`) ? /\.(\d+)\.tmp$/.exec(name)?.[1] : undefined
    if (pid !== undefined && !isAlive(Number(pid))) await rm(join(dirname(file), name), { force: true })
  }
}

async function digestsOf(contents: Files): Promise<ReadonlyMap<string, string>> {
  const digests = new Map<string, string>()
  for (const [path, content] of contents) {
    const isStaged = typeof content === 'object' && 'staged' in content
    digests.set(path, isStaged ? await digestOfFile(content.staged) : digestOf(Buffer.from(content)))
  }
  return digests
}

/** Digests of the present files at the paths of staged ones. */
async function digestsIn(dir: string, paths: readonly string[], staged: ReadonlyMap<string, string>): Promise<List> {
  const found: Record<string, string[]> = {}
  for (const path of paths) if (staged.has(path)) found[path] = [await digestOfFile(join(dir, path))]
  return found
}

/** Removes files from a difference that were made again with the same content. */
function withoutSame(difference: Difference, digests: ReadonlyMap<string, string>, present: List): Difference {
  const same = (path: string): boolean => present[path]?.[0] === digests.get(path) && present[path] !== undefined
  return { ...difference, differing: difference.differing.filter((path) => !same(path)) }
}

/** List of a folder during a change: old and new files, sorted. */
function merged(list: List = {}, digests: ReadonlyMap<string, string>): List {
  const both = new Map(Object.entries(list))
  for (const [path, digest] of digests) both.set(path, [...new Set([...(both.get(path) ?? []), digest])])
  return Object.fromEntries([...both].sort(([a], [b]) => (a < b ? -1 : 1)))
}

const writeList = (dir: string, files: List): Promise<void> =>
  writeWhole(join(dir, listFile), `${JSON.stringify({ version: 1, files }, null, 2)}\n`)

/** Size in bytes above which a file is not normalised as a text with line endings. */
const mostText = 16 * 2 ** 20

const digestOf = (bytes: Buffer): string =>
  createHash('sha256')
    .update(bytes.length > mostText ? bytes : asCommitted(bytes))
    .digest('hex')

async function digestOfFile(file: string): Promise<string> {
  if ((await stat(file)).size <= mostText) return digestOf(await readFile(file))
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  return hash.digest('hex')
}
