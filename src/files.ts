/**
 * Reads files named by a user. Only regular files are read: a FIFO or a device could block the process forever. Texts are UTF-8, without their byte
 * order mark; anything else is refused by name.
 */
import { constants, type Stats } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { type ErrorCode, usageError } from './errors.js'

/** Code and hint of the error for a file that is refused. */
export interface Refusal {
  readonly code: ErrorCode
  readonly hint?: string
}

/** Default size limit of a text, in bytes. Tokenizers of large vocabularies have 40 MB; a string holds at most 512 MB. */
const mostTextBytes = 256 * 2 ** 20

const kinds: readonly (readonly [(stats: Stats) => boolean, string])[] = [
  [(stats) => stats.isDirectory(), 'a directory'],
  [(stats) => stats.isFIFO(), 'a FIFO'],
  [(stats) => stats.isSocket(), 'a socket'],
  [(stats) => stats.isCharacterDevice() || stats.isBlockDevice(), 'a device'],
]

const refuse = (path: string, what: string, { code, hint }: Refusal, cause?: unknown) =>
  usageError(code, `cannot read ${path}: ${what}`, { ...(hint === undefined ? {} : { hint }), cause })

/** Reason of a failed system call, without the path, which messages already contain. */
const reason = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause)).replace(/, \w+ '.*'$/s, '')

/**
 * Runs `work` with a regular file opened for reading, and closes it.
 * @throws usage with the code of `refusal`, if it is not a regular file or cannot be read; other errors of `work`
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

/** Fills `target` from an offset in a file. @throws usage with the code of `refusal`, if the file ends early */
export async function readAt(file: FileHandle, target: Uint8Array, place: number, path: string, refusal: Refusal): Promise<void> {
  for (let at = 0; at < target.byteLength; ) {
    const { bytesRead } = await file.read(target, at, target.byteLength - at, place + at)
    if (bytesRead === 0) throw refuse(path, `it ends at byte ${place + at}, but was longer when it was opened`, refusal)
    at += bytesRead
  }
}

/**
 * Text of a file, without a leading UTF-8 byte order mark.
 * @throws usage with the code of `refusal`, for a file that cannot be read, is not a regular file, is too large (256 MiB by default) or is not
 * UTF-8; the signal's reason when it aborts
 */
export async function readText(
  path: string,
  refusal: Refusal,
  { signal, most = mostTextBytes }: { readonly signal?: AbortSignal | undefined; readonly most?: number } = {},
): Promise<string> {
  signal?.throwIfAborted()
  const bytes = await withFile(path, refusal, async (file, { size }) => {
    if (size > most) throw refuse(path, `expected at most ${most} bytes, got ${size}`, refusal)
    const target = new Uint8Array(size)
    await readAt(file, target, 0, path, refusal)
    return target
  })
  signal?.throwIfAborted()
  return textOf(bytes, path, refusal)
}

/** Text of UTF-8 bytes, without a byte order mark. @throws usage with the code of `refusal`, for other encodings */
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

/** True if an error was caused by a missing file. */
export const isMissing = (error: unknown): boolean =>
  error instanceof Error && error.cause instanceof Error && 'code' in error.cause && error.cause.code === 'ENOENT'
