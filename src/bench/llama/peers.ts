/**
 * Runs a LLaMA-like model in PyTorch, in several modes, on the same machine and shapes after the plans, as the alternative of a user. A
 * machine without PyTorch is reported in a line and is never a failure.
 */
import { join } from 'node:path'
import { execa } from 'execa'
import { z } from 'zod'
import type { FloatType } from '../../checkpoint/convert.js'
import type { LlamaConfig } from '../../models/llama/config.js'
import { peersFolder } from '../../toolchain/paths.js'
import { type Shape, shapeName } from '../result.js'
import { summarise } from '../statistics.js'
import type { LlamaPeers, LlamaPeerTimes } from './result.js'
import type { Products } from './work.js'

export interface LlamaPeerBench {
  readonly config: LlamaConfig
  readonly dtype: FloatType
  /** Matmul types of the timed plans. */
  readonly products: readonly Products[]
  readonly steps: readonly Shape[]
  readonly prompts: readonly Shape[]
  readonly window: number
  readonly repeats: number
  /** Modes to time; default: the fastest ones for the shapes. */
  readonly ways?: readonly string[] | undefined
  readonly signal?: AbortSignal | undefined
}

const timesLine = z.object({
  what: z.enum(['step', 'prompt']),
  products: z.enum(['float', 'int8 weights', 'int8']),
  way: z.string(),
  batch: z.int(),
  seq: z.int(),
  samples: z.array(z.number()).min(1).optional(),
  floor: z.number().optional(),
  peakBytes: z.number().optional(),
  error: z.string().optional(),
})
const scriptLine = z.union([
  timesLine.transform(({ samples, floor, peakBytes, error, ...rest }): { readonly times: LlamaPeerTimes } => ({
    times: { ...rest, milliseconds: samples === undefined ? undefined : summarise(samples), floor, peakBytes, error },
  })),
  z.object({ problem: z.string() }),
  z.object({ about: z.record(z.string(), z.string()) }),
])

/** Command that starts the script: next to heddle's sources, or in the bundle. */
export const llamaTorchCommand = (): readonly [string, ...string[]] => ['python3', join(peersFolder(), 'torch_llama.py')]

/** Modes of the script; the last one is eager PyTorch in a CUDA graph. */
export const llamaPeerWays = ['compile', 'flex', 'max-autotune', 'graph'] as const

/** Times the peers; calls `onLine` for each. @throws the signal's reason when it fires; nothing else */
export async function timeLlamaTorch(
  bench: LlamaPeerBench,
  onLine: (line: string) => void = () => {},
  [file, ...args] = llamaTorchCommand(),
): Promise<LlamaPeers> {
  const { signal } = bench
  signal?.throwIfAborted()
  const lacking = unsupportedBy(bench)
  if (lacking !== undefined) {
    onLine(`torch: ${lacking}`)
    return { framework: 'torch', about: {}, times: [], problem: lacking }
  }
  const child = execa(file, args, {
    reject: false,
    input: JSON.stringify(requestOf(bench)),
    ...(signal === undefined ? {} : { cancelSignal: signal }),
  })
  const times: LlamaPeerTimes[] = []
  let about: LlamaPeers['about'] = {}
  let problem: string | undefined
  for await (const text of child) {
    const line = parseLine(text)
    if (line === undefined) continue
    if ('problem' in line) problem = line.problem
    else if ('about' in line) about = line.about
    else {
      times.push(line.times)
      onLine(describeLlamaPeer(line.times))
    }
  }
  const { exitCode, stderr, originalMessage } = await child
  signal?.throwIfAborted()
  const last = stderr.trimEnd().split('\n').at(-1) || originalMessage || `exit code ${exitCode}`
  if (exitCode !== 0) problem = `${file} failed: ${last}`
  if (problem !== undefined) onLine(`torch: ${problem}`)
  return { framework: 'torch', about, times, problem }
}

/** One line per measured peer. */
function describeLlamaPeer({ what, way, products, milliseconds, error, ...shape }: LlamaPeerTimes): string {
  const time = milliseconds === undefined ? error : `${milliseconds.median.toPrecision(4)} ms`
  return `torch ${way}, ${products}, ${what} ${shapeName(shape)}: ${time}`
}

/** Feature of a model that the script does not support. */
function unsupportedBy({ config: { window, qkNorm, qkvBias } }: LlamaPeerBench): string | undefined {
  const found = Object.entries({ 'a window': window !== undefined, 'norms of heads': qkNorm, biases: qkvBias })
  const [lacking] = found.find(([, has]) => has) ?? []
  return lacking === undefined ? undefined : `not timed: the model has ${lacking}, the script's models have none`
}

/** Request that the script reads from stdin. */
function requestOf({ config, signal: _, ...rest }: LlamaPeerBench): object {
  const { layers, hidden, heads, kvHeads, headDim, inner, vocab, eps, tied, rotary } = config
  return { config: { layers, hidden, heads, kvHeads, headDim, inner, vocab, eps, tied, theta: rotary.theta }, ...rest }
}

/** Parses a line of the script; undefined for other output, because libraries print too. */
function parseLine(text: string): z.infer<typeof scriptLine> | undefined {
  try {
    return scriptLine.parse(JSON.parse(text))
  } catch {
    return undefined
  }
}
