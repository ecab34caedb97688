/** A real tsserver over its pipes: an editor's requests, and answers by the number of the request. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { join } from 'node:path'
import { repository } from '../cli/host.js'

export interface Shown {
  readonly text: string
  readonly code: number
  readonly source?: string
  readonly start: { readonly line: number; readonly offset: number }
  readonly end: { readonly line: number; readonly offset: number }
}

interface Answer {
  readonly type: string
  readonly request_seq?: number
  readonly success?: boolean
  readonly message?: string
  readonly body?: unknown
}

export class TsServer {
  readonly #child: ChildProcessWithoutNullStreams
  readonly #waiting = new Map<number, (answer: Answer) => void>()
  #sequence = 0
  #received = Buffer.alloc(0)

  /** @param plugins another folder to search for plugins, besides the neighbours of typescript */
  constructor(plugins: string) {
    const server = join(repository, 'node_modules/typescript/lib/tsserver.js')
    const options = ['--disableAutomaticTypingAcquisition', '--pluginProbeLocations', plugins]
    this.#child = spawn(process.execPath, [server, ...options], { cwd: plugins })
    this.#child.stdout.on('data', (chunk: Buffer) => this.#receive(chunk))
  }

  /** Opens a file with a text that may differ from the disk. */
  open(file: string, text: string): void {
    this.#send('open', { file, fileContent: text })
  }

  /** Replaces the text of an open file. */
  replace(file: string, text: string): void {
    this.#send('updateOpen', { openFiles: [{ file, fileContent: text }] })
  }

  async errors(file: string): Promise<readonly Shown[]> {
    const { success, message, body } = await this.#ask('semanticDiagnosticsSync', { file })
    if (success !== true) throw new Error(`tsserver: ${message}`)
    return body as readonly Shown[]
  }

  close(): void {
    this.#child.kill()
  }

  #send(command: string, given: object): number {
    const seq = ++this.#sequence
    this.#child.stdin.write(`${JSON.stringify({ seq, type: 'request', command, arguments: given })}\n`)
    return seq
  }

  #ask(command: string, given: object): Promise<Answer> {
    return new Promise((answered) => this.#waiting.set(this.#send(command, given), answered))
  }

  #receive(chunk: Buffer): void {
    this.#received = Buffer.concat([this.#received, chunk])
    for (;;) {
      const head = this.#received.indexOf('\r\n\r\n')
      const length = Number(/Content-Length: (\d+)/.exec(this.#received.subarray(0, Math.max(0, head)).toString())?.[1])
      if (head < 0 || this.#received.length < head + 4 + length) return
      const answer = JSON.parse(this.#received.subarray(head + 4, head + 4 + length).toString()) as Answer
      this.#received = this.#received.subarray(head + 4 + length)
      if (answer.request_seq !== undefined) this.#waiting.get(answer.request_seq)?.(answer)
    }
  }
}
