/**
 * Reads bytes of large files by position, in chunks, since a file may be larger than memory. No file stays open between chunks. All chunks come from
 * the version of the file whose header was read; otherwise the read fails.
 */
import type { Stats } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { type ErrorCode, usageError } from '../errors.js'
import { type Refusal, readAt, withFile } from '../files.js'

/** Identity of a file's version, compared between reading the header and reading the data. */
interface Version {
  readonly ino: number
  readonly size: number
  readonly mtimeMs: number
}

export const versionOf = ({ ino, size, mtimeMs }: Stats): Version => ({ ino, size, mtimeMs })

/** A file whose header was read. */
export interface PieceSource {
  readonly path: string
  readonly version: Version
  /** Position of the first data byte. */
  readonly first: number
  /** Error for a file that cannot be read. */
  readonly refusal: Refusal
  /** Error code for a file that changed. */
  readonly changed: ErrorCode
}

/** Chunk size in bytes. Reading takes two such chunks. */
const usualBytes = 4 * 2 ** 20

/** Buffers that are free again. They are reused, because allocating memory takes as long as reading. */
const idle: Uint8Array[] = []
const mostIdle = 4

/** A buffer of the given number of bytes, to be returned after use. */
const takeBuffer = (bytes: number): Uint8Array => (bytes === usualBytes ? idle.pop() : undefined) ?? new Uint8Array(bytes)

function giveBack(buffer: Uint8Array): void {
  if (buffer.byteLength === usualBytes && idle.length < mostIdle) idle.push(buffer)
}

/**
 * Data bytes `from` to `to - 1`. One chunk is prefetched, so that the disk and the consumer work at the same time. A chunk is valid until the next
 * one is requested; all but the last have `pieceBytes`.
 * @throws usage, as defined by the source, for a file that cannot be read or that changed; the signal's reason when it aborts
 */
export async function* readPieces(
  { path, version, first, refusal, changed }: PieceSource,
  from: number,
  to: number,
  signal: AbortSignal | undefined,
  pieceBytes = usualBytes,
): AsyncGenerator<Uint8Array, void> {
  // A single chunk needs one buffer.
  const buffers = to - from > pieceBytes ? [takeBuffer(pieceBytes), takeBuffer(pieceBytes)] : [takeBuffer(to - from)]
  const read = (at: number, turn: number): Promise<Uint8Array> => {
    const piece = (buffers[turn % 2] ?? new Uint8Array()).subarray(0, Math.min(pieceBytes, to - at))
    return withSame(path, version, { refusal, changed }, (file) => readAt(file, piece, first + at, path, refusal)).then(
      () => piece,
    )
  }
  if (from === to) return
  let next = read(from, 0)
  try {
    for (let at = from, turn = 1; at < to; at += pieceBytes, turn++) {
      const piece = await next
      signal?.throwIfAborted()
      if (at + pieceBytes < to) next = read(at + pieceBytes, turn)
      yield piece
    }
  } finally {
    // A consumer that stops early must not leave an unhandled rejection.
    await next.catch(() => {})
    for (const buffer of buffers) giveBack(buffer)
  }
}

/** @throws usage, with the code, for a file that was modified since its header was read */
const withSame = (
  path: string,
  { ino, size, mtimeMs }: Version,
  { refusal, changed }: Pick<PieceSource, 'refusal' | 'changed'>,
  work: (file: FileHandle) => Promise<void>,
): Promise<void> =>
  withFile(path, refusal, (file, now) => {
    if (now.ino === ino && now.size === size && now.mtimeMs === mtimeMs) return work(file)
    throw usageError(changed, `${path} changed while it was read`, { hint: 'load it again when it is complete' })
  })
