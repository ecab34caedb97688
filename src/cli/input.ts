/** What a verb reads from where it was started: a file by its name, or what is piped into the command. */
import { type Refusal, readText, textOf } from '../files.js'

/** Names of the standard input. */
const pipes = ['-', '/dev/stdin']

/**
 * The text of a file, or of the standard input for `-`. A pipe that goes by another name is refused as what it is.
 * @throws usage, as the refusal says; the signal's reason when it aborts
 */
export async function readInput(file: string, refusal: Refusal, signal?: AbortSignal): Promise<string> {
  if (!pipes.includes(file)) return readText(file, refusal, { signal })
  const stop = (): void => void process.stdin.destroy(signal?.reason instanceof Error ? signal.reason : undefined)
  signal?.addEventListener('abort', stop, { once: true })
  try {
    const chunks: Buffer[] = []
    for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk))
    signal?.throwIfAborted()
    return textOf(Buffer.concat(chunks), 'the standard input', refusal)
  } finally {
    signal?.removeEventListener('abort', stop)
  }
}
