/** `heddle bench encoder`: how long the plans of an encoder take on a device. */
import { Command, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import Table from 'cli-table3'
import { benchEncoder, type EncoderTimes, type Shape } from '../bench/encoder.js'
import { lengthsOf } from '../bench/lengths.js'
import { benchConfig } from '../bench/synthetic.js'
import { defaultPlan } from '../models/plans.js'
import { openDevice } from '../runtime/device.js'
import { loadKernels } from '../runtime/library.js'
import type { NativeDeviceInfo } from '../runtime/native.js'
import { installation } from '../toolchain/index.js'
import { type CliContext, json } from './context.js'
import { positive } from './options.js'
import { type DeviceKind, defaultDevice, deviceKinds, dtypes, readManifest } from './pipeline.js'

export interface BenchEncoderOptions {
  /** A known configuration or a model folder. */
  readonly config: string
  readonly plans: readonly string[]
  readonly shapes: readonly Shape[]
  /** `full`, `half` or a file of lengths. */
  readonly lengths: string
  readonly dtype: (typeof dtypes)[number]
  readonly device?: DeviceKind | undefined
  readonly repeats: number
  readonly profile?: boolean | undefined
}

export interface BenchEncoderResult {
  readonly device: NativeDeviceInfo
  readonly config: string
  readonly dtype: string
  readonly lengths: string
  readonly results: readonly EncoderTimes[]
}

/** `1x128,32x128` as shapes. */
export function shapesOf(text: string): Shape[] {
  return text.split(',').map((part) => {
    const match = /^([1-9]\d*)x([1-9]\d*)$/.exec(part)
    if (match === null) throw new InvalidArgumentError(`"${part}" is not a shape: expected batch x seq, such as 32x128.`)
    return { batch: Number(match[1]), seq: Number(match[2]) }
  })
}

const mebibytes = (bytes: number): string => (bytes / 2 ** 20).toFixed(1)
const milliseconds = (value: number): string => value.toPrecision(4)

const describe = ({ plan, batch, seq, milliseconds: { median, low, high } }: EncoderTimes): string =>
  `${plan} ${batch}x${seq}: ${milliseconds(median)} ms (${milliseconds(low)} to ${milliseconds(high)})\n`

/** The results as a table, and one more for each profile. */
export function benchTable(results: readonly EncoderTimes[]): string {
  const style = { head: [], border: [] }
  const head = [
    'plan',
    'shape',
    'mean length',
    'median ms',
    'quartiles ms',
    'kernels',
    'matmuls',
    'arena MiB',
    'weights MiB',
    'TFLOP/s',
  ]
  const table = new Table({ head, style })
  for (const { plan, batch, seq, meanLength, milliseconds: time, kernels, matmuls, memory, work } of results) {
    table.push([
      plan,
      `${batch}x${seq}`,
      meanLength.toFixed(1),
      milliseconds(time.median),
      `${milliseconds(time.low)} to ${milliseconds(time.high)}`,
      kernels,
      matmuls,
      mebibytes(memory.arenaBytes),
      mebibytes(memory.weightBytes),
      (work.flops / time.median / 1e9).toPrecision(3),
    ])
  }
  const profiles = results.flatMap(({ plan, batch, seq, profile }) => {
    if (profile === undefined) return []
    const total = profile.reduce((sum, step) => sum + step.milliseconds, 0)
    const steps = new Table({ head: [`${plan} ${batch}x${seq}`, 'count', 'ms', 'share'], style })
    for (const step of profile) {
      steps.push([
        step.kernel,
        step.count,
        milliseconds(step.milliseconds),
        `${((100 * step.milliseconds) / total).toFixed(1)} %`,
      ])
    }
    return [steps.toString()]
  })
  return `${[table.toString(), ...profiles].join('\n')}\n`
}

/** @throws usage `bench.*`, `plan.unknown`, `manifest.*`; environment for a missing device, addon or kernel library */
export async function runBenchEncoder(options: BenchEncoderOptions, context: CliContext): Promise<BenchEncoderResult> {
  const { root, signal } = context
  const { dtype, plans, shapes, repeats } = options
  const config = await benchConfig(options.config, root)
  const lengths = lengthsOf(options.lengths)
  const manifest = await readManifest(root)
  const kind = options.device ?? defaultDevice()
  const device = openDevice(kind)
  try {
    const library = loadKernels(device, installation(root).library(kind), manifest)
    const info = device.info()
    context.log(`${info.name} (${kind}), ${options.config}, ${dtype}, lengths ${options.lengths}\n`)
    const profile = options.profile ?? false
    const results = await benchEncoder(
      { device, library, manifest, config, dtype, plans, shapes, lengths, repeats, profile, signal },
      (times) => context.log(describe(times)),
    )
    return { device: info, config: options.config, dtype, lengths: options.lengths, results }
  } finally {
    device.close()
  }
}

const encoderCommand = (context: () => CliContext) =>
  new Command('encoder')
    .description('time forward passes of a BERT encoder with random weights')
    .option('--config <name>', 'bert-base, bert-large or a model folder', 'bert-base')
    .option('--plans <names>', 'fusion plans, separated by commas', (text) => text.split(','), [defaultPlan])
    .option('--shapes <shapes>', 'batch x seq, separated by commas', shapesOf, [{ batch: 1, seq: 128 }])
    .option('--lengths <lengths>', 'full, half (uniform in 1..seq), or a file of lengths', 'full')
    .addOption(new Option('--dtype <dtype>', 'storage type').choices(dtypes).default('f16' as const))
    .addOption(new Option('--device <device>', 'default: cuda if a GPU works, else simt').choices(deviceKinds))
    .option('--repeats <count>', 'timed passes of each plan and shape', positive, 30)
    .option('--profile', 'also time every step by itself')
    .option('--json', 'print the results as JSON')
    .action(async (options) => {
      const result = await runBenchEncoder(options, context())
      context().out(options.json ? json(result) : benchTable(result.results))
    })

export const benchCommand = (context: () => CliContext) =>
  new Command('bench').description('measure plans on a device').addCommand(encoderCommand(context))
