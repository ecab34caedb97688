/** A remote command while it runs: started here, answered by a marked line, ended by an exit that says why. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { remoteCommand } from './command.js'
import { commandMissing, type Ended } from './failures.js'
import { marker } from './scripts.js'

export interface LinkOptions {
  readonly signal?: AbortSignal | undefined
  readonly onNotice?: ((text: string) => void) | undefined
}

/** A running remote command. */
export interface Command {
  readonly child: ChildProcessWithoutNullStreams
  /** First line after the marker; undefined if the command ended before it. Later output goes to `onData`. */
  readonly answer: Promise<string | undefined>
  readonly ended: Promise<Ended>
  /** Receives output after the answer. */
  onData: (piece: Buffer) => void
}

/** @throws environment `remote.command` (through `ended`, as an exit) */
export function start(on: string, script: string, args: readonly string[], { signal }: LinkOptions): Command {
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
