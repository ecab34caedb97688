/**
 * Reading files that a user names. Only regular files are read: a FIFO or a device could hold the process for ever. Texts are UTF-8, of
 * which a byte order mark is no part; anything else is refused with what it is.
 */
import { constants, type Stats } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { type ErrorCode, usageError } from './errors.js'

/** How a refusal reads. */
export interface Refusal {
  /** Of the error. */
  readonly code: ErrorCode
  readonly hint?: string
}

/** The most bytes of a text, where nothing less is said. Tokenizers of large vocabularies have 40 MB; a string holds at most 512 MB. */
const mostTextBytes = 256 * 2 ** 20

const kinds: readonly (readonly [(stats: Stats) => boolean, string])[] = [
  [(stats) => stats.isDirectory(), 'a directory'],
  [(stats) => stats.isFIFO(), 'a FIFO'],
  [(stats) => stats.isSocket(), 'a socket'],
  [(stats) => stats.isCharacterDevice() || stats.isBlockDevice(), 'a device'],
]

const refuse = (path: string, what: string, { code, hint }: Refusal, cause?: unknown) =>
  usageError(code, `cannot read ${path}: ${what}`, { ...(hint === undefined ? {} : { hint }), cause })

/** The reason of a failed call of the system, without the path that messages have already. */
const reason = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause)).replace(/, \w+ '.*'$/s, '')

/**
 * Runs `work` with a regular file that is open for reading, and closes it.
 * @throws usage, as the refusal says, for what is not a regular file or cannot be read; what `work` throws that is no failure of the system
 */
export async function withFile<T>(
  path: string,
  refusal: Refusal,
  work: (file: FileHandle, stats: Stats) => Promise<T>,
): Promise<T> {
  // Without O_NONBLOCK, opening a FIFO waits for a writer.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((cause: unknown) => {
    throw refuse(path, reason(cause), refusal, cause)
  })
  try {
    const stats = await file.stat()
    if (!stats.isFile()) {
      const kind = kinds.find(([is]) => is(stats))?.[1] ?? 'something else'
      throw refuse(path, `it is ${kind}, not a regular file`, refusal)
    }
    return await work(file, stats)
  } catch (cause) {
    if (cause instanceof Error && 'syscall' in cause) throw refuse(path, reason(cause), refusal, cause)
    throw cause
  } finally {
    await file.close()
  }
}

/** Fills `target` from a place in a file. @throws usage, as the refusal says, where the file ends before */
export async function readAt(file: FileHandle, target: Uint8Array, place: number, path: string, refusal: Refusal): Promise<void> {
  for (let at = 0; at < target.byteLength; ) {
    const { bytesRead } = await file.read(target, at, target.byteLength - at, place + at)
    if (bytesRead === 0) throw refuse(path, `it ends at byte ${place + at}, it had more when it was opened`, refusal)
    at += bytesRead
  }
}

/**
 * The text of a file. A UTF-8 byte order mark in front is left out.
 * @throws usage, as the refusal says, for a file that cannot be read, is no regular file, is too large (256 MiB, where nothing less is said) or is not UTF-8; the
 * signal's reason when it aborts
 */
export async function readText(
  path: string,
  refusal: Refusal,
  { signal, most = mostTextBytes }: { readonly signal?: AbortSignal | undefined; readonly most?: number } = {},
): Promise<string> {
  signal?.throwIfAborted()
  const bytes = await withFile(path, refusal, async (file, { size }) => {
    if (size > most) throw refuse(path, `it has ${size} bytes, at most ${most} are read`, refusal)
    const target = new Uint8Array(size)
    await readAt(file, target, 0, path, refusal)
    return target
  })
  signal?.throwIfAborted()
  return textOf(bytes, path, refusal)
}

/** The text of UTF-8 bytes, without a byte order mark. @throws usage, as the refusal says, for other encodings */
export function textOf(bytes: Uint8Array, path: string, refusal: Refusal): string {
  const [first, second] = bytes
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)) {
    throw refuse(path, 'it is UTF-16, expected UTF-8', refusal)
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw refuse(path, 'it is not UTF-8', refusal, cause)
  }
}

/** True if an error says that there is no such file. */
export const isMissing = (error: unknown): boolean =>
  error instanceof Error && error.cause instanceof Error && 'code' in error.cause && error.cause.code === 'ENOENT'
