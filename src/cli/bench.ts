/** `heddle bench encoder`: times the plans of an encoder on a device, compared with the physical floor and peers. */
import { resolve } from 'node:path'
import { Command, Option } from '@commander-js/extra-typings'
import type { EncoderBench } from '../bench/candidates.js'
import { type BenchObserver, benchEncoder } from '../bench/encoder.js'
import { deviceCeilings } from '../bench/facts/facts.js'
import { lengthsOf } from '../bench/lengths.js'
import { timeTorch } from '../bench/peers.js'
import { type BenchEncoderResult, type Peers, ratiosOf, type Shape } from '../bench/result.js'
import { sizedConfig } from '../bench/synthetic.js'
import { benchTable, describePeer, describeTimes } from '../bench/table.js'
import { usageError } from '../errors.js'
import { reportPage } from '../explorer/report.js'
import { bertLayers } from '../models/assembly/layer_graphs.js'
import { namedFile } from '../output.js'
import { defaultPlan } from '../program/plans.js'
import { choosePlan } from '../runtime/default_plan.js'
import type { NativeDeviceInfo } from '../runtime/native.js'
import { openKernels } from '../runtime/open.js'
import { keptFor } from '../runtime/tuned_matmuls.js'
import type { TunedMatmul } from '../schedule/tuning/library.js'
import { decodingCommand } from './bench_decoding.js'
import { historyCommand } from './bench_history.js'
import { llamaCommand } from './bench_llama.js'
import { givenShapes, shapesOf } from './bench_options.js'
import { suiteCommand } from './bench_suite.js'
import { addTarget } from './bench_target.js'
import { type CliContext, json } from './context.js'
import { countsOf, positive } from './options.js'
import { compiledDeviceOption, type DeviceName, dtypes, onOption, openOptions } from './pipeline.js'
import { readTuning } from './tuning_file.js'

export interface BenchEncoderOptions {
  /** A known configuration or a model folder. */
  readonly config: string
  /** Plans to time; by default the plan that a model gets on the device. */
  readonly plans?: readonly string[] | undefined
  readonly shapes: readonly Shape[]
  /** Number of heads and elements per head, instead of those of a named configuration. */
  readonly heads?: number | undefined
  readonly size?: number | undefined
  /** `full`, `half` or a file of lengths. */
  readonly lengths: string
  /** Times the model with a random mask over pairs of tokens. */
  readonly masked?: boolean | undefined
  readonly dtype: (typeof dtypes)[number]
  readonly device?: DeviceName | undefined
  /** Machine of the device: a name of ~/.ssh/config, or a command prefix. */
  readonly on?: string | undefined
  readonly repeats: number
  /** Tuning file. Each plan is timed with the matmul library's first algorithms, and with those of the file. */
  readonly algorithms?: string | undefined
  readonly profile?: boolean | undefined
  /** Also times this framework, if Python has it. */
  readonly peer?: 'torch' | undefined
  /** Path of an HTML report, which contains a profile. */
  readonly report?: string | undefined
}

/** Prints stages and results to stderr as they arrive. */
const observer = ({ log }: CliContext): BenchObserver => ({
  onStage: (stage) => log(`${stage}\n`),
  onResult: (times) => log(`${describeTimes(times)}\n`),
})

async function timePeers(bench: EncoderBench, { log }: CliContext): Promise<Peers> {
  log('timing the torch peers\n')
  const peers = await timeTorch(bench, (times) => log(`${describePeer('torch', times)}\n`))
  if (peers.problem !== undefined) log(`torch: ${peers.problem}\n`)
  return peers
}

/** Command line for these options, for the report. */
function commandOf(options: BenchEncoderOptions, name: DeviceName): string {
  const { config, plans = [], shapes, lengths, masked, dtype, repeats } = options
  const others = (['heads', 'size', 'algorithms', 'peer'] as const).flatMap((option) =>
    options[option] === undefined ? [] : [` --${option} ${options[option]}`],
  )
  const sizes = shapes.map(({ batch, seq }) => `${batch}x${seq}`).join()
  const common = `heddle bench encoder --config ${config} --plans ${plans.join()} --shapes ${sizes} --lengths ${lengths}${masked ? ' --masked' : ''}`
  return `${common} --dtype ${dtype} --device ${name} --repeats ${repeats}${others.join('')}`
}

/** The algorithms of a tuning file for a device. @throws usage `tuning.*`, `bench.algorithms` if the file has none for it */
async function keptAlgorithms(file: string, info: NativeDeviceInfo, root: string): Promise<readonly TunedMatmul[]> {
  const tuning = await readTuning({ root, file })
  const own = keptFor(tuning?.matmuls, info)
  if (own.length > 0) return own
  throw usageError('bench.algorithms', `${file} has no algorithms of the matmul library for ${info.name}`, {
    hint: `measure some on it: heddle tune --library --out ${file}`,
  })
}

/** @throws usage `bench.*`, `plan.unknown`, `manifest.*`; environment for a missing device, addon or kernel library */
export async function runBenchEncoder(options: BenchEncoderOptions, context: CliContext): Promise<BenchEncoderResult> {
  const { root, signal, log } = context
  const { dtype, shapes, repeats } = options
  const report = options.report === undefined ? undefined : resolve(root, options.report)
  const writeReport = report === undefined ? undefined : await namedFile(report, 'bench.report')
  const config = await sizedConfig(options.config, root, options)
  const lengths = lengthsOf(options.lengths)
  const { device, library, manifest } = await openKernels(options.device, {
    ...openOptions(context, { on: options.on, who: 'bench' }),
    compiled: true,
  })
  const { kind } = device
  try {
    const info = device.info()
    log(`${info.name} (${kind}), ${options.config}, ${dtype}, lengths ${options.lengths}\n`)
    const chosen = options.plans === undefined ? choosePlan(manifest, info, dtype, bertLayers(config)) : undefined
    if (chosen !== undefined) log(`plan ${chosen.name} (${chosen.reason}; --plans takes others)\n`)
    const plans = options.plans ?? [chosen?.name ?? defaultPlan]
    const profile = options.profile ?? report !== undefined
    const ceilings = await deviceCeilings(device, { onStage: (what) => log(`${what}\n`) })
    const algorithms = options.algorithms === undefined ? undefined : await keptAlgorithms(options.algorithms, info, root)
    const bench = {
      algorithms,
      ceilings,
      device,
      library,
      manifest,
      config,
      dtype,
      plans,
      shapes,
      lengths,
      masked: options.masked,
      repeats,
      profile,
      signal,
    }
    const results = await benchEncoder(bench, observer(context))
    const peers = options.peer === undefined ? undefined : await timePeers(bench, context)
    const about = {
      config: options.config,
      dtype,
      lengths: options.lengths,
      ...(options.masked ? { masked: true as const } : {}),
    }
    const result = { device: info, ceilings, ...about, results, peers, ratios: ratiosOf(results, peers) }
    if (report !== undefined) {
      await writeReport?.(reportPage(result, commandOf({ ...options, plans }, options.device ?? kind)))
      log(`report: ${report}\n`)
    }
    return result
  } finally {
    device.close()
  }
}

export const encoderCommand = (context: () => CliContext) =>
  new Command('encoder')
    .description('time forward passes of a BERT encoder with random weights')
    .option('--config <name>', 'bert-base, bert-large or a model folder', 'bert-base')
    .option('--plans <names>', 'fusion plans, separated by commas; default: the plan of a model on the device', (text) =>
      text.split(','),
    )
    .option('--shapes <shapes>', 'batch x length, separated by commas; default: 1x128', shapesOf)
    .option('--batch <counts>', 'sequences, separated by commas, each with every --length', countsOf)
    .option('--length <counts>', 'tokens of a sequence, separated by commas', countsOf)
    .option('--heads <count>', 'attention heads, instead of those of a named configuration', positive)
    .option('--size <count>', 'elements of a head', positive)
    .option('--lengths <lengths>', 'full, half (uniform in 1..seq), or a file of lengths', 'full')
    .addOption(new Option('--masked', 'with a random mask over pairs of tokens, in addition to the lengths').conflicts('peer'))
    .addOption(new Option('--dtype <dtype>', 'storage type').choices(dtypes).default('f16' as const))
    .addOption(compiledDeviceOption())
    .addOption(onOption())
    .option('--repeats <count>', 'timed replays of each plan and shape', positive, 30)
    .option('--algorithms <file>', 'also time each plan with the matmul algorithms of a tuning file')
    .option('--profile', 'also time every step separately')
    .addOption(new Option('--peer <framework>', 'also time the same work in a framework').choices(['torch'] as const))
    .option('--report <file>', 'write a page with charts, as `heddle explore` does; also times every step separately')
    .option('--json', 'print the results as JSON')
    .action(async (options) => {
      const result = await runBenchEncoder({ ...options, shapes: givenShapes(options) }, context())
      context().out(options.json ? json(result) : benchTable(result, options.profile ?? false))
    })

export const benchCommand = (context: () => CliContext) =>
  addTarget(new Command('bench').description('measure kernels, graphs and plans on a device'), context)
    .enablePositionalOptions()
    .addCommand(suiteCommand(context))
    .addCommand(historyCommand(context))
    .addCommand(encoderCommand(context))
    .addCommand(decodingCommand(context))
    .addCommand(llamaCommand(context))
