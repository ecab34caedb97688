/**
 * The link to an agent on another machine: starts it, sends missing parts first, and matches replies to requests. The link ends the remote process when
 * it closes, and fails every waiting request when it is lost.
 */
import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import { pipeline } from 'node:stream/promises'
import { constants, createBrotliCompress, createBrotliDecompress } from 'node:zlib'
import type { HeddleError } from '../../errors.js'
import { endedError, noiseOn, otherPlatform, repliedError } from './failures.js'
import { encodeFrame, frameReader } from './frames.js'
import { localParts, type Part, withArchive } from './parts.js'
import { compression, type Reply, type Request } from './protocol.js'
import { putScript, startScript } from './scripts.js'
import { type Command, type LinkOptions, start } from './start.js'

export interface Link {
  readonly on: string
  /** Bytes sent to the machine so far, parts included, and replies from it. */
  bytes(): Readonly<Bytes>
  isClosed(): boolean
  /**
   * @param blobs bytes that the request names by digest, and that the agent may ask for
   * @throws environment `remote.lost`; an `Error` with the code of the addon
   */
  ask(request: Request, blobs?: Blobs): Promise<unknown>
  /** Sends a request whose failure later requests report. */
  tell(request: Request): void
  close(): void
}

/** Bytes by digest. */
export type Blobs = ReadonlyMap<string, Uint8Array>

/** Counts of bytes. */
interface Bytes {
  sent: number
  received: number
}

/** Sends parts. @throws environment `remote.*` */
async function put(on: string, parts: readonly Part[], gzip: boolean, options: LinkOptions, bytes: Bytes): Promise<void> {
  options.onNotice?.(`sending ${parts.map(({ name }) => name.replace(/-.*/, '')).join(', ')} to ${on}`)
  await withArchive(parts, gzip, async (archive) => {
    const command = start(on, putScript, [gzip ? 'gzip' : 'plain', ...parts.map(({ name }) => name)], options)
    archive.on('data', (piece: string | Buffer) => {
      bytes.sent += piece.length
    })
    // A failed transfer shows in the exit.
    await pipeline(archive, command.child.stdin).catch(() => undefined)
    const answer = await command.answer
    const ended = await command.ended
    options.signal?.throwIfAborted()
    if (answer !== 'put') throw endedError(ended, false)
  })
}

/**
 * Connects to an agent on a machine, after sending what it lacks.
 * @throws usage `remote.host`; environment `remote.*`, `addon.missing`
 */
export async function connect(on: string, options: LinkOptions = {}): Promise<Link> {
  const parts = await localParts()
  const bytes = { sent: 0, received: 0 }
  for (let isFirst = true; ; isFirst = false) {
    options.signal?.throwIfAborted()
    const command = start(
      on,
      startScript,
      parts.map(({ name }) => name),
      options,
    )
    const answer = await command.answer
    if (answer === undefined) {
      const ended = await command.ended
      options.signal?.throwIfAborted()
      throw endedError(ended, false)
    }
    const [system = '', machine = '', zip = '', ...missing] = answer.split(/\s+/)
    if (`${system} ${machine}` !== 'Linux x86_64') {
      command.child.kill()
      throw otherPlatform(on, `${system} ${machine}`, 'Linux x86_64')
    }
    if (missing[0] === 'ready') return linkOf(on, command, bytes)
    const ended = await command.ended
    if (!isFirst) throw endedError({ ...ended, stderr: `${ended.stderr}\nits cache does not keep ${missing.join(', ')}` }, false)
    await put(
      on,
      parts.filter(({ name }) => missing.includes(name)),
      zip === 'gzip',
      options,
      bytes,
    )
  }
}

interface Waiting {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
  readonly blobs: Blobs | undefined
}

/** Sends requests, and counts their compressed bytes. */
function sender({ stdin }: ChildProcessWithoutNullStreams, bytes: Bytes) {
  // Requests resemble each other, so that a case of a check takes a few dozen bytes.
  const packed = createBrotliCompress(compression)
  packed.on('data', (piece: Buffer) => {
    bytes.sent += piece.byteLength
  })
  packed.pipe(stdin)
  let [last, isFlushing] = [0, false]
  const write = (id: number, request: Request): void => void packed.write(encodeFrame({ id, request }))
  return {
    /** Sends a request with a reply. @returns its number */
    ask(request: Request): number {
      write(last + 1, request)
      last += 1
      return last
    },
    tell: (request: Request): void => write(0, request),
    /** Sends what was written, together with what is written in the same turn of the event loop. */
    flush(): void {
      if (isFlushing) return
      isFlushing = true
      setImmediate(() => {
        isFlushing = false
        packed.flush(constants.BROTLI_OPERATION_FLUSH)
      })
    },
    end: (): void => void packed.end(),
  }
}

/** Reads replies of an agent, or notices that another program writes. */
function replyReader(command: Command, bytes: Bytes, onReply: (reply: Reply) => void, stop: () => void): void {
  const unpacked = createBrotliDecompress()
  const read = frameReader((frame) => onReply(frame as Reply))
  unpacked.on('error', stop).on('data', (piece: Buffer) => {
    try {
      read(piece)
    } catch {
      stop()
    }
  })
  command.onData = (piece) => {
    bytes.received += piece.byteLength
    unpacked.write(piece)
  }
}

/** Keeps this process alive for a waiting request; an idle link does not. */
function hold(child: ChildProcessWithoutNullStreams, isHeld: boolean): void {
  for (const each of [child, child.stdin, child.stdout, child.stderr]) {
    const handle = each as { ref?: () => void; unref?: () => void }
    if (isHeld) handle.ref?.()
    else handle.unref?.()
  }
}

function linkOf(on: string, command: Command, bytes: Bytes): Link {
  const { child, ended } = command
  const sent = sender(child, bytes)
  const waiting = new Map<number, Waiting>()
  let lost: HeddleError | undefined
  let [hasAnswered, isClosed] = [false, false]
  const fail = (error: HeddleError): void => {
    lost ??= error
    for (const { reject } of waiting.values()) reject(error)
    waiting.clear()
  }
  ended.then((how) => fail(endedError(how, hasAnswered)), fail)
  const onReply = ({ id, needs, value, error }: Reply): void => {
    hasAnswered = true
    const request = waiting.get(id)
    for (const digest of needs ?? []) {
      // Bytes that nobody has: the request fails there, instead of waiting for ever.
      sent.tell({ op: 'give', digest, data: request?.blobs?.get(digest) ?? new Uint8Array() })
    }
    if (needs !== undefined) {
      sent.flush()
      return
    }
    waiting.delete(id)
    if (waiting.size === 0) hold(child, false)
    if (error === undefined) request?.resolve(value)
    else request?.reject(repliedError(on, error))
  }
  replyReader(command, bytes, onReply, () => {
    fail(noiseOn(on))
    child.kill()
  })
  return {
    on,
    bytes: () => ({ ...bytes }),
    isClosed: () => isClosed,
    ask(request, blobs) {
      if (lost !== undefined) return Promise.reject(lost)
      if (isClosed) return Promise.reject(Object.assign(new Error(`the device on ${on} was closed`), { code: 'CLOSED' }))
      return new Promise((resolve, reject) => {
        waiting.set(sent.ask(request), { resolve, reject, blobs })
        sent.flush()
        hold(child, true)
      })
    },
    tell(request) {
      if (lost !== undefined || isClosed) return
      sent.tell(request)
      // Others go with the next request.
      if (request.op === 'abort') sent.flush()
    },
    close() {
      isClosed = true
      sent.end()
      hold(child, false)
    },
  }
}
