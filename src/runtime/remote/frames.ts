/**
 * Frames between heddle and its agent on another machine: four bytes of length, then one value as Node serialises it, so that bytes, infinities and
 * negative zeros arrive as they are. Both ends run the same Node binary. Used over the standard streams of a remote command.
 */
import { deserialize, serialize } from 'node:v8'

/** Maximum length of a frame. A longer one is noise of another program on the stream. */
const limitBytes = 2 ** 30

/** @throws Error `INVALID` for a value longer than a frame */
export function encodeFrame(value: unknown): Buffer {
  const body = serialize(value)
  if (body.byteLength > limitBytes) {
    const message = `${body.byteLength} bytes at once: at most ${limitBytes} go to or come from another machine`
    throw Object.assign(new Error(message), { code: 'INVALID' })
  }
  const head = Buffer.alloc(4)
  head.writeUInt32LE(body.byteLength)
  return Buffer.concat([head, body])
}

/** Splits a stream into frames. @throws Error for a length that no frame has */
export function frameReader(onFrame: (value: unknown) => void): (piece: Buffer) => void {
  let pieces: Buffer[] = []
  let held = 0
  let wanted = 4
  let isBody = false
  return (piece) => {
    pieces.push(piece)
    held += piece.byteLength
    while (held >= wanted) {
      const whole = pieces.length === 1 ? (pieces[0] ?? piece) : Buffer.concat(pieces)
      const part = whole.subarray(0, wanted)
      pieces = [whole.subarray(wanted)]
      held -= wanted
      if (isBody) onFrame(deserialize(part))
      wanted = isBody ? 4 : part.readUInt32LE()
      isBody = !isBody
      if (wanted > limitBytes) throw new Error(`a frame of ${wanted} bytes`)
    }
  }
}
