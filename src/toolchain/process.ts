/** Runs compilers. A tool and its children form one process group, so that cancelling ends all of them. */
import { execa } from 'execa'

export interface ToolResult {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

export interface ToolOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal | undefined
}

const graceMs = 2000

function killGroup(pid: number, signal: 'SIGTERM' | 'SIGKILL'): void {
  try {
    process.kill(-pid, signal)
  } catch {
    // The group has already ended.
  }
}

/**
 * Runs a tool to completion and returns its output and exit code. A tool that cannot start has exit code 127.
 * @throws the signal's reason when it fires, once the whole process group has ended
 */
export async function runTool(file: string, args: readonly string[], options: ToolOptions = {}): Promise<ToolResult> {
  const { signal } = options
  signal?.throwIfAborted()
  const child = execa(file, args, {
    reject: false,
    detached: true,
    cleanup: false,
    stdin: 'ignore',
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(options.env === undefined ? {} : { env: options.env }),
  })
  let killer: NodeJS.Timeout | undefined
  const cancel = () => {
    const { pid } = child
    if (pid === undefined) return
    killGroup(pid, 'SIGTERM')
    killer = setTimeout(() => killGroup(pid, 'SIGKILL'), graceMs)
  }
  signal?.addEventListener('abort', cancel, { once: true })
  try {
    const result = await child
    signal?.throwIfAborted()
    return { exitCode: result.exitCode ?? 127, stdout: result.stdout, stderr: result.stderr }
  } finally {
    clearTimeout(killer)
    signal?.removeEventListener('abort', cancel)
  }
}

/** First lines of a tool's messages, starting at the first error. */
export function firstLines(stderr: string, count = 8): string {
  const lines = stderr.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('ptxas info'))
  const start = lines.findIndex((line) => /\berror\b/i.test(line))
  return lines.slice(Math.max(start, 0), Math.max(start, 0) + count).join('\n')
}
