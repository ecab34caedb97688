/**
 * Runs Hugging Face's `generate` on a model of the benchmark's sizes on the same machine, as the alternative of a user. A machine without
 * PyTorch or transformers is reported in a line and is never a failure.
 */
import { join } from 'node:path'
import { execa } from 'execa'
import { z } from 'zod'
import { peersFolder } from '../toolchain/paths.js'
import type { DecodingBench } from './decoding.js'
import { type Summary, summarise } from './statistics.js'

type Sizes = Pick<
  DecodingBench,
  'layers' | 'heads' | 'headDim' | 'vocab' | 'steps' | 'memory' | 'batches' | 'choice' | 'dtype' | 'repeats' | 'signal'
>

export interface SeqPeers {
  readonly about: Readonly<Record<string, string>>
  readonly times: readonly { readonly batch: number; readonly milliseconds: Summary }[]
  readonly problem: string | undefined
}

const scriptLine = z.union([
  z.object({ batch: z.int(), samples: z.array(z.number()).min(1) }),
  z.object({ problem: z.string() }),
  z.object({ about: z.record(z.string(), z.string()) }),
])

const warmup = 2

/** Times `generate` at every batch; calls `onLine` for each. @throws the signal's reason when it fires */
export async function timeSeq2seqTorch(sizes: Sizes, onLine: (line: string) => void): Promise<SeqPeers> {
  const { signal, ...request } = sizes
  signal?.throwIfAborted()
  const script = join(peersFolder(), 'torch_seq2seq.py')
  const child = execa('python3', [script], {
    reject: false,
    input: JSON.stringify({ ...request, warmup }),
    ...(signal === undefined ? {} : { cancelSignal: signal }),
  })
  const times: SeqPeers['times'][number][] = []
  let about: SeqPeers['about'] = {}
  let problem: string | undefined
  for await (const text of child) {
    const line = parse(text)
    if (line === undefined) continue
    if ('problem' in line) problem = line.problem
    else if ('about' in line) about = line.about
    else {
      const milliseconds = summarise(line.samples)
      times.push({ batch: line.batch, milliseconds })
      onLine(`torch generate at batch ${line.batch}: ${milliseconds.median.toPrecision(4)} ms`)
    }
  }
  const { exitCode, stderr } = await child
  signal?.throwIfAborted()
  if (exitCode !== 0) problem = `${script} failed: ${stderr.trimEnd().split('\n').at(-1) ?? `exit code ${exitCode}`}`
  if (problem !== undefined) onLine(`torch: ${problem}`)
  return { about, times, problem }
}

/** Parses a line of the script; undefined for other output, because libraries print too. */
function parse(text: string): z.infer<typeof scriptLine> | undefined {
  try {
    return scriptLine.parse(JSON.parse(text))
  } catch {
    return undefined
  }
}
