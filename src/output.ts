/**
 * What heddle writes for a user, by one rule: a file is replaced or removed only if heddle wrote it, or if the user named that very file on the
 * command line. All verbs write through here. A folder says what of it heddle wrote: `generated/` by its manifest and the headers of its files,
 * other folders by a list (output_listed.ts). Everything is looked at before anything is written, and no half of a file remains.
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
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import writeFileAtomic from 'write-file-atomic'
import { type ErrorCode, usageError } from './errors.js'
import { writing } from './writing.js'

/** What a file is to hold, or where it lies finished, to be moved to its place. */
export type Content = string | Uint8Array | { readonly staged: string }

/** Files by their paths below a folder, with `/`, in the order in which they are written. */
export type Files<T = Content> = ReadonlyMap<string, T>

/** What of a folder heddle wrote. */
export interface Ownership {
  /** Paths below the folder. */
  readonly paths: Iterable<string>
  /** Tells of what lies at a path now, whose file is a regular one, if heddle wrote it. */
  wrote(path: string, file: string): Promise<boolean>
}

/** A project, whose own files no output folder may hold. */
export interface Place {
  readonly root: string
  /** Folder of the spec modules; default `specs`. */
  readonly specs?: string | undefined
}

/** How a folder differs from what it is to hold. */
export interface Difference {
  readonly missing: readonly string[]
  /** Written by heddle, with other content. */
  readonly differing: readonly string[]
  /** Not written by heddle, or a link, or a folder, where a file is to be written. */
  readonly foreign: readonly string[]
  /** Written by heddle, and no longer wanted. */
  readonly stale: readonly string[]
}

const elsewhere = 'name a new or an empty folder with --out'

/** @throws usage `output.folder` for a folder that holds the project, its specs or the user's home, under whatever name */
export async function expectApart(dir: string, { root, specs = 'specs' }: Place): Promise<void> {
  const real = await realOf(dir)
  const kept = [
    ["the project's folder", root],
    ['the folder of its specs', resolve(root, specs)],
    ['your home folder', homedir()],
  ] as const
  for (const [what, path] of kept) {
    const rest = relative(real, await realOf(path))
    if (rest === '..' || rest.startsWith(`..${sep}`) || isAbsolute(rest)) continue
    throw usageError('output.folder', `${dir} ${rest === '' ? 'is' : 'holds'} ${what}: no output goes there`, {
      hint: elsewhere,
    })
  }
}

/** The path without links, of which the end may not be there yet. */
async function realOf(path: string): Promise<string> {
  const full = resolve(path)
  const real = await realpath(full).catch(() => undefined)
  if (real !== undefined || full === dirname(full)) return real ?? full
  return join(await realOf(dirname(full)), basename(full))
}

/** Files that say nothing of whose folder it is. They stay as well. */
const silent = new Set(['.gitkeep', '.gitignore', '.gitattributes', '.DS_Store'])

/**
 * Holds for a folder in which heddle wrote nothing: it is empty, or not there yet.
 * @param ignored names of files that may lie there
 * @throws usage `output.folder` with the first file that somebody else has there
 */
export async function expectEmpty(dir: string, ignored: readonly string[] = [], hint: string = elsewhere): Promise<void> {
  const stats = await stat(dir).catch(() => undefined)
  if (stats === undefined) return
  if (!stats.isDirectory()) throw usageError('output.folder', `${dir} is not a folder`, { hint: elsewhere })
  const found = await firstFile(dir, new Set([...silent, ...ignored]))
  if (found === undefined) return
  throw usageError('output.folder', `${dir} is not empty, and heddle did not write what it holds: ${relative(dir, found)}`, {
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

/** Compares a folder with what it is to hold, and changes nothing. `unknown` content differs from any. */
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
    // A link leads to what is somebody's own.
    if (at + 1 < parts.length ? !stats.isDirectory() : !stats.isFile()) return 'foreign'
  }
  return (await owned.wrote(path, join(dir, path))) ? 'differing' : 'foreign'
}

/** Tells if a file holds a content already, or a checkout of it with the line ends of Windows. */
async function holds(file: string, content: Content | 'unknown'): Promise<boolean> {
  if (content === 'unknown' || (typeof content === 'object' && 'staged' in content)) return false
  const stats = await stat(file).catch(() => undefined)
  if (stats === undefined || !stats.isFile()) return false
  return asCommitted(await readFile(file)).equals(asCommitted(Buffer.from(content)))
}

/** A text as git keeps it: with line feeds alone. What holds a zero is none. */
export function asCommitted(bytes: Buffer): Buffer {
  if (!bytes.includes('\r\n') || bytes.includes(0)) return bytes
  return Buffer.from(bytes.toString('latin1').replaceAll('\r\n', '\n'), 'latin1')
}

const shown = 5

/** @throws usage `output.file` for files in the way that heddle did not write */
export function refuseForeign(dir: string, foreign: readonly string[]): void {
  if (foreign.length === 0) return
  const names = foreign.slice(0, shown).map((path) => join(dir, path))
  const more = foreign.length > shown ? ` and ${foreign.length - shown} more` : ''
  throw usageError(
    'output.file',
    `in the way is what heddle did not write, or what was edited since: ${names.join(', ')}${more}`,
    {
      hint: 'move it away, or name another folder with --out',
    },
  )
}

/**
 * Makes a folder hold files. What it held of others stays, and after a failure also what it held of heddle.
 * @throws usage `output.file`; environment `cache.full`, `cache.write` for what the file system refuses
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

/** Removes files below a folder, and the folders that this leaves empty. */
export async function removeFiles(dir: string, paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    await rm(join(dir, path), { force: true })
    for (let folder = dirname(path); folder !== '.'; folder = dirname(folder)) if (!(await removeEmpty(join(dir, folder)))) break
  }
}

/** Removes a folder unless something lies in it. */
export const removeEmpty = (folder: string): Promise<boolean> =>
  rmdir(folder).then(
    () => true,
    () => false,
  )

/**
 * A file that the user named on the command line, which may be replaced: what writes it, once what is to be written is known. Looked at first, so that
 * hours of work are not spent on what cannot be written. What is no regular file, such as a device or a FIFO, is written to and not replaced.
 * @throws usage `code` for a folder, and for a place that cannot be written; so does the function
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
    // With a dot, what is no folder is refused as well.
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
