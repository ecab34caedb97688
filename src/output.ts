/**
 * Output files of heddle, by one rule: a file is replaced or removed only if heddle wrote it, or if the user named that very file on the
 * command line. All verbs write through here. Each folder records the files that heddle wrote: `generated/` in its manifest and the headers of
 * its files, other folders in a list (output_listed.ts). Everything is checked before anything is written, and no partial file remains.
 */
import {
  access,
  constants,
  lstat,
  mkdir,
  opendir,
  readFile,
  realpath,
  rename,
  rm,
  rmdir,
  stat,
  writeFile,
} from 'node:fs/promises'
import { homedir } from 'node:os'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import writeFileAtomic from 'write-file-atomic'
import { type ErrorCode, usageError } from './errors.js'
import { isWithin } from './path_names.js'
import { writing } from './writing.js'

/** Content of a file, or the path of a finished file that is moved to its place. */
export type Content = string | Uint8Array | { readonly staged: string }

/** Files by path below a folder, with `/`, in the order of writing. */
export type Files<T = Content> = ReadonlyMap<string, T>

/** Files of a folder that heddle wrote. */
export interface Ownership {
  /** Paths below the folder. */
  readonly paths: Iterable<string>
  /** True if heddle wrote the regular file that is now at a path. */
  wrote(path: string, file: string): Promise<boolean>
}

/** A project, whose own files no output folder may contain. */
export interface Place {
  readonly root: string
  /** Folder of the spec modules; default `specs`. */
  readonly specs?: string | undefined
}

/** Difference between a folder and its wanted content. */
export interface Difference {
  readonly missing: readonly string[]
  /** Written by heddle, with other content. */
  readonly differing: readonly string[]
  /** Obstacles at the path of a wanted file: a file that heddle did not write, a link, or a folder. */
  readonly foreign: readonly string[]
  /** Written by heddle, but no longer wanted. */
  readonly stale: readonly string[]
}

const elsewhere = 'name a new or an empty folder with --out'

/** @throws usage `output.folder` for a folder that contains the project, its specs or the user's home, also through links */
export async function expectApart(dir: string, { root, specs = 'specs' }: Place): Promise<void> {
  const real = await realOf(dir)
  const reserved = [
    ["the project's folder", root],
    ['the folder of its specs', resolve(root, specs)],
    ['your home folder', homedir()],
  ] as const
  for (const [what, path] of reserved) {
    const found = await realOf(path)
    if (!isWithin(real, found)) continue
    const relation = relative(real, found) === '' ? 'is' : 'contains'
    throw usageError('output.folder', `${dir} ${relation} ${what}: no output is written there`, {
      hint: elsewhere,
    })
  }
}

/** Path without links; its last parts need not exist yet. */
async function realOf(path: string): Promise<string> {
  const full = resolve(path)
  const real = await realpath(full).catch(() => undefined)
  if (real !== undefined || full === dirname(full)) return real ?? full
  return join(await realOf(dirname(full)), basename(full))
}

/** Files that do not count as foreign content. They are also never removed. */
const silent = new Set(['.gitkeep', '.gitignore', '.gitattributes', '.DS_Store'])

/**
 * Checks that a folder in which heddle wrote nothing is empty or does not exist.
 * @param ignored names of files that may exist there
 * @throws usage `output.folder` naming the first foreign file
 */
export async function expectEmpty(dir: string, ignored: readonly string[] = [], hint: string = elsewhere): Promise<void> {
  const stats = await stat(dir).catch(() => undefined)
  if (stats === undefined) return
  if (!stats.isDirectory()) throw usageError('output.folder', `${dir} is not a folder`, { hint: elsewhere })
  const found = await firstFile(dir, new Set([...silent, ...ignored]))
  if (found === undefined) return
  throw usageError('output.folder', `${dir} has files that heddle did not write: ${relative(dir, found)}`, {
    hint,
  })
}

async function firstFile(dir: string, ignored: ReadonlySet<string>): Promise<string | undefined> {
  for await (const entry of await opendir(dir)) {
    const path = join(dir, entry.name)
    const found = entry.isDirectory() ? await firstFile(path, ignored) : ignored.has(entry.name) ? undefined : path
    if (found !== undefined) return found
  }
  return undefined
}

/** Compares a folder with its wanted content, and changes nothing. `unknown` content differs from any. */
export async function compareFolder(dir: string, files: Files<Content | 'unknown'>, owned: Ownership): Promise<Difference> {
  const difference = { missing: [] as string[], differing: [] as string[], foreign: [] as string[], stale: [] as string[] }
  for (const [path, content] of files) {
    if (await holds(join(dir, path), content)) continue
    difference[await stateOf(dir, path, owned)].push(path)
  }
  for (const path of owned.paths)
    if (!files.has(path) && (await stateOf(dir, path, owned)) === 'differing') difference.stale.push(path)
  return difference
}

async function stateOf(dir: string, path: string, owned: Ownership): Promise<'missing' | 'differing' | 'foreign'> {
  const parts = path.split('/')
  for (const [at] of parts.entries()) {
    const place = join(dir, ...parts.slice(0, at + 1))
    const stats = await lstat(place).catch(() => undefined)
    if (stats === undefined) return 'missing'
    // A link leads to foreign files.
    if (at + 1 < parts.length ? !stats.isDirectory() : !stats.isFile()) return 'foreign'
  }
  return (await owned.wrote(path, join(dir, path))) ? 'differing' : 'foreign'
}

/** True if a file has the content already, or a checkout of it with Windows line endings. */
async function holds(file: string, content: Content | 'unknown'): Promise<boolean> {
  if (content === 'unknown' || (typeof content === 'object' && 'staged' in content)) return false
  const stats = await stat(file).catch(() => undefined)
  if (stats === undefined || !stats.isFile()) return false
  return asCommitted(await readFile(file)).equals(asCommitted(Buffer.from(content)))
}

/** Normalises a text to line feeds, as git stores it. Bytes with a zero are binary and stay unchanged. */
export function asCommitted(bytes: Buffer): Buffer {
  if (!bytes.includes('\r\n') || bytes.includes(0)) return bytes
  return Buffer.from(bytes.toString('latin1').replaceAll('\r\n', '\n'), 'latin1')
}

const shown = 5

/** @throws usage `output.file` for foreign files in the way */
export function refuseForeign(dir: string, foreign: readonly string[]): void {
  if (foreign.length === 0) return
  const names = foreign.slice(0, shown).map((path) => join(dir, path))
  const more = foreign.length > shown ? ` and ${foreign.length - shown} more` : ''
  throw usageError(
    'output.file',
    `files are in the way that heddle did not write, or that were edited since: ${names.join(', ')}${more}`,
    {
      hint: 'move it away, or name another folder with --out',
    },
  )
}

/**
 * Updates a folder to the given files. Foreign files stay; after a failure, heddle's earlier files stay too.
 * @throws usage `output.file`; environment `cache.full`, `cache.write` for errors of the file system
 */
export async function changeFolder(dir: string, files: Files, difference: Difference): Promise<void> {
  const { missing, differing, foreign, stale } = difference
  refuseForeign(dir, foreign)
  const changed = new Set([...missing, ...differing])
  const made: string[] = []
  try {
    for (const [path, content] of files) {
      if (!changed.has(path)) continue
      if (missing.includes(path)) made.push(path)
      await writeWhole(join(dir, path), content)
    }
  } catch (error) {
    await removeFiles(dir, made).catch(() => undefined)
    throw error
  }
  await removeFiles(dir, stale)
}

/** @throws environment `cache.full`, `cache.write` */
export const writeWhole = (file: string, content: Content): Promise<void> =>
  writing(file, async () => {
    await mkdir(dirname(file), { recursive: true })
    if (typeof content === 'object' && 'staged' in content) await rename(content.staged, file)
    else await writeFileAtomic(file, typeof content === 'string' ? content : Buffer.from(content))
  })

/** Removes files below a folder, and folders that become empty. */
export async function removeFiles(dir: string, paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    await rm(join(dir, path), { force: true })
    for (let folder = dirname(path); folder !== '.'; folder = dirname(folder)) if (!(await removeEmpty(join(dir, folder)))) break
  }
}

/** Removes a folder if it is empty. Returns true if it was removed. */
export const removeEmpty = (folder: string): Promise<boolean> =>
  rmdir(folder).then(
    () => true,
    () => false,
  )

/**
 * Returns the writer of a file that the user named on the command line and that may be replaced. The path is checked first, so that no hours
 * of work are lost to a file that cannot be written. A device, FIFO or other special file is written to and not replaced.
 * @throws usage `code` for a folder, and for a path that cannot be written; so does the writer
 */
export async function namedFile(
  path: string,
  code: ErrorCode = 'output.write',
): Promise<(content: string | Uint8Array) => Promise<void>> {
  const refuse = (cause: unknown) => {
    const reason = cause instanceof Error ? cause.message.replace(/, \w+ '.*'$/s, '') : String(cause)
    return usageError(code, `cannot write ${path}: ${reason}`, { hint: 'name a file in a folder that exists', cause })
  }
  try {
    const stats = await stat(path).catch(() => undefined)
    if (stats?.isDirectory()) throw new Error('it is a folder')
    if (stats !== undefined) await access(path, constants.W_OK)
    const replaces = stats === undefined || stats.isFile()
    // The dot makes `access` fail for a parent that is not a folder.
    if (replaces) await access(`${dirname(await realOf(path))}${sep}.`, constants.W_OK)
    return async (content) => {
      const written = replaces ? writeFileAtomic(path, asBytes(content)) : writeFile(path, content)
      await written.catch((cause: unknown) => {
        throw refuse(cause)
      })
    }
  } catch (cause) {
    throw refuse(cause)
  }
}

const asBytes = (content: string | Uint8Array): string | Buffer => (typeof content === 'string' ? content : Buffer.from(content))
