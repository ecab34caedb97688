/** Input of a verb: a file, or data piped into the command. */
import { type Refusal, readText, textOf } from '../files.js'

/** Names of the standard input. */
const pipes = ['-', '/dev/stdin']

/**
 * Text of a file, or of the standard input for `-`. A pipe with another name is refused.
 * @throws usage, with the code of `refusal`; the signal's reason when it aborts
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
