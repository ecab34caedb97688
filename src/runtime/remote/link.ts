/**
 * The link to an agent on another machine: starts it, sends missing parts first, and matches replies to requests. The link ends the remote process when
 * it closes, and fails every waiting request when it is lost.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { pipeline } from 'node:stream/promises'
import { constants, createDeflateRaw } from 'node:zlib'
import type { HeddleError } from '../../errors.js'
import { remoteCommand } from './command.js'
import { commandMissing, type Ended, endedError, otherPlatform } from './failures.js'
import { encodeFrame, frameReader } from './frames.js'
import { localParts, type Part, withArchive } from './parts.js'
import type { Reply, Request } from './protocol.js'
import { marker, putScript, startScript } from './scripts.js'

export interface Link {
  readonly on: string
  /** Bytes sent to the machine so far, parts included. */
  sentBytes(): number
  isClosed(): boolean
  /** @throws environment `remote.lost`; an `Error` with the code of the addon */
  ask(request: Request): Promise<unknown>
  /** Sends a request whose failure later requests report. */
  tell(request: Request): void
  close(): void
}

export interface LinkOptions {
  readonly signal?: AbortSignal | undefined
  readonly onNotice?: ((text: string) => void) | undefined
}

/** Count of sent bytes. */
interface Sent {
  sent: number
}

/** A running remote command. */
interface Command {
  readonly child: ChildProcessWithoutNullStreams
  /** First line after the marker; undefined if the command ended before it. Later output goes to `onData`. */
  readonly answer: Promise<string | undefined>
  readonly ended: Promise<Ended>
  /** Receives output after the answer. */
  onData: (piece: Buffer) => void
}

/** @throws environment `remote.command` (through `ended`, as an exit) */
function start(on: string, script: string, args: readonly string[], { signal }: LinkOptions): Command {
  const { file, args: words } = remoteCommand(on, script, args)
  const child = spawn(file, words, { stdio: 'pipe' })
  const stop = (): void => void child.kill()
  signal?.addEventListener('abort', stop, { once: true })
  let stderr = ''
  child.stderr.on('data', (piece: Buffer) => {
    stderr = `${stderr}${piece.toString()}`.slice(-16_384)
  })
  // The exit says why.
  child.stdin.on('error', () => undefined)
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on('error', (error: NodeJS.ErrnoException) => reject(error.code === 'ENOENT' ? commandMissing(on, file) : error))
    child.on('close', (exitCode, name) => resolve({ on, file, exitCode, signal: name, stderr }))
  }).finally(() => signal?.removeEventListener('abort', stop))
  ended.catch(() => undefined)
  const command: Command = {
    child,
    ended,
    answer: answerOf(child, ended, (piece) => command.onData(piece)),
    onData: () => undefined,
  }
  return command
}

/** Finds the marked line in the output. What a login shell prints before it is dropped. */
function answerOf(
  child: ChildProcessWithoutNullStreams,
  ended: Promise<Ended>,
  rest: (piece: Buffer) => void,
): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    let before: Buffer | undefined = Buffer.alloc(0)
    child.stdout.on('data', (piece: Buffer) => {
      if (before === undefined) {
        rest(piece)
        return
      }
      before = Buffer.concat([before, piece])
      const at = before.indexOf(marker)
      const end = at < 0 ? -1 : before.indexOf('\n', at)
      if (end < 0) return
      const [line, remaining] = [
        before
          .subarray(at + marker.length, end)
          .toString()
          .trim(),
        before.subarray(end + 1),
      ]
      before = undefined
      resolve(line)
      // The caller sets its receiver first.
      if (remaining.length > 0) setImmediate(rest, remaining)
    })
    ended.then(() => resolve(undefined), reject)
  })
}

/** Sends parts. @throws environment `remote.*` */
async function put(on: string, parts: readonly Part[], gzip: boolean, options: LinkOptions, bytes: Sent): Promise<void> {
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
  const bytes = { sent: 0 }
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
}

function linkOf(on: string, command: Command, bytes: Sent): Link {
  const { child, ended } = command
  // Requests resemble each other, so that a case of a check takes a few dozen bytes.
  const packed = createDeflateRaw({ level: 1 })
  packed.on('data', (piece: Buffer) => {
    bytes.sent += piece.byteLength
  })
  packed.pipe(child.stdin)
  const waiting = new Map<number, Waiting>()
  let lost: HeddleError | undefined
  let hasAnswered = false
  let [isClosed, last] = [false, 0]
  // An idle link does not keep the process alive; a waiting request does.
  const hold = (isHeld: boolean): void => {
    for (const each of [child, child.stdin, child.stdout, child.stderr]) {
      const handle = each as { ref?: () => void; unref?: () => void }
      if (isHeld) handle.ref?.()
      else handle.unref?.()
    }
  }
  const fail = (error: HeddleError): void => {
    lost = error
    for (const { reject } of waiting.values()) reject(error)
    waiting.clear()
  }
  ended.then((how) => fail(endedError(how, hasAnswered)), fail)
  const read = frameReader((frame) => {
    const { id, value, error } = frame as Reply
    hasAnswered = true
    const request = waiting.get(id)
    waiting.delete(id)
    if (waiting.size === 0) hold(false)
    if (error === undefined) request?.resolve(value)
    else request?.reject(Object.assign(new Error(error.message), error))
  })
  command.onData = (piece) => {
    try {
      read(piece)
    } catch {
      // Another program writes to the stream.
      child.kill()
    }
  }
  const send = (request: Request): number => {
    last += 1
    packed.write(encodeFrame({ id: last, request }))
    packed.flush(constants.Z_SYNC_FLUSH)
    return last
  }
  return {
    on,
    sentBytes: () => bytes.sent,
    isClosed: () => isClosed,
    ask(request) {
      if (lost !== undefined) return Promise.reject(lost)
      if (isClosed) return Promise.reject(Object.assign(new Error(`the device on ${on} was closed`), { code: 'CLOSED' }))
      return new Promise((resolve, reject) => {
        waiting.set(send(request), { resolve, reject })
        hold(true)
      })
    },
    tell(request) {
      if (lost === undefined && !isClosed) send(request)
    },
    close() {
      isClosed = true
      packed.end()
      hold(false)
    },
  }
}
