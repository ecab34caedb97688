/**
 * Bytes of large files by their position, piece by piece: a file may be larger than memory. No file stays open between pieces, and all
 * pieces come from the version of the file whose header was read, or not at all.
 */
import type { Stats } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { type ErrorCode, usageError } from '../errors.js'
import { type Refusal, readAt, withFile } from '../files.js'

/** What must not change between reading a header and reading what it describes. */
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
  /** The place of the first data byte. */
  readonly first: number
  /** How a file that cannot be read is refused. */
  readonly refusal: Refusal
  /** The code of the error for a file that changed. */
  readonly changed: ErrorCode
}

/** Bytes read at once: two such pieces are all that reading takes. */
const usualBytes = 4 * 2 ** 20

/** Memory of pieces that nobody reads any more: fresh memory takes as long as reading does. */
const idle: Uint8Array[] = []
const mostIdle = 4

/** Memory for pieces of so many bytes, to be given back. */
const takeBuffer = (bytes: number): Uint8Array => (bytes === usualBytes ? idle.pop() : undefined) ?? new Uint8Array(bytes)

function giveBack(buffer: Uint8Array): void {
  if (buffer.byteLength === usualBytes && idle.length < mostIdle) idle.push(buffer)
}

/**
 * Data bytes `from` to `to - 1`, one piece read ahead, so that the disk and whoever takes the pieces work at the same time. A piece is
 * valid until the next one is asked for; all but the last have `pieceBytes`.
 * @throws usage, as the source says, for a file that cannot be read or that changed; the signal's reason when it aborts
 */
export async function* readPieces(
  { path, version, first, refusal, changed }: PieceSource,
  from: number,
  to: number,
  signal: AbortSignal | undefined,
  pieceBytes = usualBytes,
): AsyncGenerator<Uint8Array, void> {
  // One is enough for what is one piece.
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
    // Whoever stops early must not leave a rejection that nobody hears.
    await next.catch(() => {})
    for (const buffer of buffers) giveBack(buffer)
  }
}

/** @throws usage, by the code, for a file that was written to since its header was read */
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
