/** `heddle bench decoding`: times a number of steps of a decoder with random weights; tokens are chosen on the device. */
import { Command, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import { benchDecoding, type DecodingTimes } from '../bench/decoding.js'
import { type SeqPeers, timeSeq2seqTorch } from '../bench/decoding_peers.js'
import { decodingTable, describeDecoding } from '../bench/decoding_table.js'
import { usageError } from '../errors.js'
import type { NativeDeviceInfo } from '../runtime/native.js'
import { openKernels } from '../runtime/open.js'
import { type CliContext, json } from './context.js'
import { countsOf, positive } from './options.js'
import { compiledDeviceOption, type DeviceName, dtypes, onOption, openOptions } from './pipeline.js'

export interface BenchDecodingOptions {
  readonly plans: readonly string[]
  readonly batch: readonly number[]
  readonly layers: number
  readonly heads: number
  readonly headSize: number
  readonly vocab: number
  readonly steps: number
  readonly memory: number
  /** Width of the memory; default: the width of the decoder. */
  readonly memoryHidden?: number | undefined
  readonly beam?: number | undefined
  readonly topK?: number | undefined
  readonly topP?: number | undefined
  readonly diversityRate?: number | undefined
  readonly dtype: (typeof dtypes)[number]
  readonly device?: DeviceName | undefined
  /** Machine of the device: a name of ~/.ssh/config, or a command prefix. */
  readonly on?: string | undefined
  readonly repeats: number
  readonly profile?: boolean | undefined
  readonly peer?: 'torch' | undefined
}

export interface BenchDecodingResult {
  readonly device: NativeDeviceInfo
  readonly results: readonly DecodingTimes[]
  readonly peers: SeqPeers | undefined
}

/** @throws usage `bench.peer` for an option without an equivalent setting in Hugging Face's models */
function expectPeer({ peer, memoryHidden, diversityRate }: BenchDecodingOptions): void {
  if (peer === undefined) return
  const [other] = Object.entries({ '--memory-hidden': memoryHidden, '--diversity-rate': diversityRate }).filter(
    ([, value]) => value !== undefined,
  )
  if (other === undefined) return
  throw usageError('bench.peer', `${other[0]} has no equivalent among the settings of Hugging Face's generate`, {
    hint: 'leave --peer or the option out',
  })
}

/** @throws usage `bench.peer`, `plan.*`, `generate.*`, `manifest.*`; environment for a missing device, addon or kernel library */
export async function runBenchDecoding(options: BenchDecodingOptions, context: CliContext): Promise<BenchDecodingResult> {
  const { plans, batch: batches, layers, heads, headSize: headDim, vocab, steps, memory, memoryHidden, dtype, repeats } = options
  expectPeer(options)
  const { log, signal } = context
  const kernels = await openKernels(options.device, { ...openOptions(context, { on: options.on, who: 'bench' }), compiled: true })
  const { device } = kernels
  try {
    const info = device.info()
    log(`${info.name} (${device.kind}), ${layers} layers, ${heads} x ${headDim}, vocabulary ${vocab}, ${steps} steps, ${dtype}\n`)
    const choice = Object.fromEntries(
      Object.entries({
        beams: options.beam,
        topK: options.topK,
        topP: options.topP,
        diversityRate: options.diversityRate,
      }).filter(([, value]) => value !== undefined),
    )
    const sizes = { layers, heads, headDim, vocab, steps, memory, memoryHidden, batches, choice, dtype, repeats, signal }
    const results = await benchDecoding(
      { ...kernels, ...sizes, plans, profile: options.profile ?? false },
      { onStage: (stage) => log(`${stage}\n`), onResult: (times) => log(`${describeDecoding(times)}\n`) },
    )
    const peers = options.peer === undefined ? undefined : await timeSeq2seqTorch(sizes, (line) => log(`${line}\n`))
    return { device: info, results, peers }
  } finally {
    device.close()
  }
}

/** A number from the command line. Its range is checked at its use. */
function number(text: string): number {
  const value = Number(text)
  if (text.trim() === '' || Number.isNaN(value)) throw new InvalidArgumentError('Expected a number.')
  return value
}

export const decodingCommand = (context: () => CliContext) =>
  new Command('decoding')
    .description('time steps of a decoder with random weights over an encoder output of given length')
    .option('--plans <names>', 'fusion plans, separated by commas', (text) => text.split(','), ['best-decoder'])
    .option('--batch <counts>', 'sequences, separated by commas', countsOf, [1])
    .option('--layers <count>', 'decoder layers', positive, 6)
    .option('--heads <count>', 'attention heads', positive, 8)
    .option('--head-size <count>', 'elements per head', positive, 64)
    .option('--vocab <count>', 'size of the vocabulary', positive, 30_000)
    .option('--steps <count>', 'tokens generated', positive, 32)
    .option('--memory <count>', 'positions of the memory', positive, 32)
    .option('--memory-hidden <count>', 'width of the memory; default: the width of the decoder', positive)
    .option('--beam <count>', 'hypotheses per sequence, for beam search', positive)
    .option(
      '--diversity-rate <x>',
      'with --beam: added to a token for each better one of its beam; below 0 beams differ more',
      number,
    )
    .option('--top-k <count>', 'sample from this many of the most likely tokens', positive)
    .option('--top-p <mass>', 'sample from the most likely tokens with this total probability', number)
    .addOption(new Option('--dtype <dtype>', 'storage type').choices(dtypes).default('f16' as const))
    .addOption(compiledDeviceOption())
    .addOption(onOption())
    .option('--repeats <count>', 'timed runs of each plan and batch', positive, 20)
    .option('--profile', 'also time every kernel of a step separately')
    .addOption(new Option('--peer <framework>', 'also time the same work in a framework').choices(['torch'] as const))
    .option('--json', 'print the results as JSON')
    .action(async (options) => {
      const result = await runBenchDecoding(options, context())
      context().out(options.json ? json(result) : decodingTable(result.results))
    })
