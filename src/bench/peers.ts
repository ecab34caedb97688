/**
 * Runs the peers of a benchmark: encoders of other frameworks on the same machine, with the same shapes and lengths and the same timing,
 * so that a ratio to them is meaningful. A missing peer is a line in the result and never a failure, because heddle's own times are valid
 * without it. Called after the plans are measured, so that the two never share the GPU.
 */
import { join } from 'node:path'
import { execa } from 'execa'
import { z } from 'zod'
import type { FloatType } from '../checkpoint/convert.js'
import type { BertConfig } from '../models/encoder/config.js'
import { peersFolder } from '../toolchain/paths.js'
import type { Lengths } from './lengths.js'
import type { Peers, PeerTimes, Shape } from './result.js'
import { summarise } from './statistics.js'

export interface PeerBench {
  readonly config: BertConfig
  readonly dtype: FloatType
  readonly shapes: readonly Shape[]
  readonly lengths: Lengths
  readonly repeats: number
  readonly signal?: AbortSignal | undefined
}

const warmup = 8

const timesLine = z
  .object({
    way: z.string(),
    batch: z.int(),
    seq: z.int(),
    samples: z.array(z.number()).min(1).optional(),
    error: z.string().optional(),
  })
  .transform(({ samples, error, ...rest }) => ({
    times: { ...rest, milliseconds: samples === undefined ? undefined : summarise(samples), error },
  }))
const problemLine = z.object({ problem: z.string() })
const aboutLine = z.record(z.string(), z.string()).transform((about) => ({ about }))

/** A line of the script: times or an error of a mode, a problem that prevents all, or versions and GPU. */
const scriptLine = z.union([timesLine, problemLine, aboutLine])

/** Command that starts the PyTorch peers: the script next to heddle's sources, or in the bundle. */
export const torchCommand = (): readonly [string, ...string[]] => ['python3', join(peersFolder(), 'torch_bert.py'), '--stdin']

/**
 * Times the encoder in PyTorch's modes; calls `onTimes` for each.
 * @throws the signal's reason when it fires; nothing else
 */
export async function timeTorch(
  bench: PeerBench,
  onTimes: (times: PeerTimes) => void = () => {},
  [file, ...args] = torchCommand(),
): Promise<Peers> {
  const { signal } = bench
  signal?.throwIfAborted()
  const child = execa(file, args, {
    reject: false,
    input: JSON.stringify(requestOf(bench)),
    ...(signal === undefined ? {} : { cancelSignal: signal }),
  })
  const times: PeerTimes[] = []
  let about: Record<string, string> = {}
  let problem: string | undefined
  for await (const text of child) {
    const parsed = parseLine(text)
    if (parsed === undefined) continue
    if ('times' in parsed) {
      times.push(parsed.times)
      onTimes(parsed.times)
    } else if ('problem' in parsed) problem = parsed.problem
    else about = parsed.about
  }
  const { exitCode, stderr, originalMessage } = await child
  signal?.throwIfAborted()
  if (exitCode !== 0) problem = `${file} failed: ${lastLine(stderr) ?? originalMessage ?? `exit code ${exitCode}`}`
  return { framework: 'torch', about, times, problem }
}

/** Request that the script reads from stdin. */
function requestOf({ config, dtype, shapes, lengths, repeats }: PeerBench): object {
  const { vocab, hidden, layers, heads, inner, positions, tokenTypes, eps, activation } = config
  return {
    config: { vocab, hidden, layers, heads, inner, positions, tokenTypes, eps, activation },
    dtype,
    repeats,
    warmup,
    shapes: shapes.map(({ batch, seq }) => ({ batch, seq, lengths: lengths(batch, seq) })),
  }
}

/** Parses a line of the script; undefined for other output, because libraries print too. */
function parseLine(text: string): z.infer<typeof scriptLine> | undefined {
  try {
    return scriptLine.parse(JSON.parse(text))
  } catch {
    return undefined
  }
}

const lastLine = (text: string): string | undefined => text.trimEnd().split('\n').at(-1) || undefined
