/** `heddle bench llama`: times prompts and steps of a LLaMA-like model under its plans, compared with floor, peers and earlier times. */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Command, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import type { CacheType } from '../../specs/graphs/llama_caches.js'
import { deviceCeilings } from '../bench/facts/facts.js'
import { benchLlama, type LlamaObserver } from '../bench/llama/measure.js'
import { llamaPeerWays, timeLlamaTorch } from '../bench/llama/peers.js'
import type { BenchLlamaResult, LlamaPlanTimes } from '../bench/llama/result.js'
import { benchLlamaConfig, llamaShapes } from '../bench/llama/shapes.js'
import { describeLlama, llamaTable } from '../bench/llama/table.js'
import type { Shape } from '../bench/result.js'
import { baselineFile, baselineOf, compare, deviceName, readBaseline } from '../bench/target/baseline.js'
import { comparisonText } from '../bench/target/text.js'
import { usageError } from '../errors.js'
import { llamaLayers } from '../models/assembly/layer_graphs.js'
import { withCaches } from '../models/llama/programs.js'
import { choosePlan } from '../runtime/default_plan.js'
import { openKernels } from '../runtime/open.js'
import { expectNotSlower, expectSamples, ratioOf, shapesOf, usualRatio } from './bench_options.js'
import { type CliContext, json } from './context.js'
import { cachesOption } from './llama_options.js'
import { positive } from './options.js'
import { compiledDeviceOption, type DeviceName, dtypes, onOption, openOptions } from './pipeline.js'

export interface BenchLlamaOptions {
  /** A model folder, instead of a known shape. */
  readonly config?: string | undefined
  readonly plans?: readonly string[] | undefined
  readonly steps?: readonly Shape[] | undefined
  readonly prompts?: readonly Shape[] | undefined
  /** Storage of cached keys and values. */
  readonly caches?: CacheType | undefined
  readonly chunk?: number | undefined
  readonly invariant?: number | undefined
  readonly window: number
  readonly dtype?: (typeof dtypes)[number] | undefined
  readonly device?: DeviceName | undefined
  /** Machine of the device: a name of ~/.ssh/config, or a command prefix. */
  readonly on?: string | undefined
  readonly repeats: number
  /** `checkpoint` reads the weights of the folder. */
  readonly weights: 'random' | 'checkpoint'
  readonly profile?: boolean | undefined
  readonly peer?: 'torch' | undefined
  readonly peerWays?: readonly string[] | undefined
  readonly save?: string | undefined
  readonly baseline?: string | undefined
  readonly ratio: number
}

const usualShape = '7b'

/** Samples per shape, in the form that baselines store. */
const targets = (plans: readonly LlamaPlanTimes[]) =>
  plans.flatMap(({ times }) =>
    times.map(({ plan, what, batch, seq, samples }) => ({
      plan,
      dims: { batch, ...(what === 'step' ? { context: seq } : { tokens: seq }) },
      samples,
    })),
  )

/** @throws usage `bench.*`, `config.*`, `plan.*`; environment for a missing device, addon or kernel, and for memory; the signal's reason */
export async function runBenchLlama(
  name: string | undefined,
  options: BenchLlamaOptions,
  context: CliContext,
): Promise<BenchLlamaResult> {
  const { root, log, signal } = context
  const { repeats, chunk, invariant, window, peer } = options
  const shape = nameOf(name, options)
  const { caches = 'float' } = options
  const stored = await benchLlamaConfig(shape, root)
  const dtype = options.dtype ?? stored.dtype ?? 'f16'
  const config = withCaches(stored, caches, dtype)
  const folder = options.weights === 'checkpoint' ? folderOf(shape, root) : undefined
  const prompts = options.prompts ?? []
  const steps = options.steps ?? (prompts.length === 0 ? [{ batch: 1, seq: 512 }] : [])
  expectSamples(options)
  const save = options.save === undefined ? undefined : await baselineFile(resolve(root, options.save))
  const kernels = await openKernels(options.device, { ...openOptions(context, { on: options.on, who: 'bench' }), compiled: true })
  const { device, manifest } = kernels
  try {
    const info = device.info()
    const subject = `llama ${shape}${caches === 'int8' ? ', int8 caches' : ''}`
    const about = { subject, device: deviceName(info), dtype }
    const before = options.baseline === undefined ? undefined : await readBaseline(resolve(root, options.baseline), about)
    log(`${info.name} (${device.kind}), ${subject}, ${dtype}, ${options.weights} weights\n`)
    const ceilings = await deviceCeilings(device, { onStage: (what) => log(`${what}\n`) })
    const plans = options.plans ?? [choosePlan(manifest, info, dtype, llamaLayers(config)).name]
    const sizes = { config, dtype, steps, prompts, window, repeats, signal }
    const observer: LlamaObserver = {
      onStage: (stage) => log(`${stage}\n`),
      onResult: (times) => log(`${describeLlama(times)}\n`),
    }
    const profile = options.profile ?? false
    const results = await benchLlama({ ...kernels, ...sizes, ceilings, plans, chunk, invariant, profile, folder }, observer)
    const products = [...new Set(results.map((each) => each.products))]
    const ways = options.peerWays
    const peers = peer === undefined ? undefined : await timeLlamaTorch({ ...sizes, products, ways }, (line) => log(`${line}\n`))
    const timed = targets(results)
    if (options.save !== undefined) {
      await save?.(baselineOf(subject, info, dtype, timed))
      log(`saved: ${resolve(root, options.save)}\n`)
    }
    const comparisons = before === undefined ? undefined : compare(before, timed, options.ratio)
    return { device: info, ceilings, shape, dtype, weights: options.weights, window, plans: results, peers, comparisons }
  } finally {
    device.close()
  }
}

/** @throws usage `bench.config` if both a name and a folder are given */
function nameOf(name: string | undefined, { config }: BenchLlamaOptions): string {
  if (name !== undefined && config !== undefined) {
    throw usageError('bench.config', `shape ${name} and the configuration of ${config} are two models`, {
      hint: 'give one of them',
    })
  }
  return config ?? name ?? usualShape
}

/** @throws usage `bench.weights` for a shape without files */
function folderOf(name: string, root: string): string {
  const folder = resolve(root, name)
  if (existsSync(join(folder, 'config.json'))) return folder
  throw usageError('bench.weights', `${name} has no checkpoint to read`, { hint: 'name a model folder with --config' })
}

const names = (text: string): string[] => text.split(',')

function waysOf(text: string): string[] {
  const ways = names(text)
  const unknown = ways.find((way) => !llamaPeerWays.some((known) => known === way))
  if (unknown === undefined) return ways
  throw new InvalidArgumentError(`"${unknown}" is not a mode of the peer: expected some of ${llamaPeerWays.join(', ')}.`)
}

export const llamaCommand = (context: () => CliContext) =>
  new Command('llama')
    .description('time prompts and steps of a LLaMA-like model with random weights')
    .argument('[shape]', `one of ${llamaShapes.join(', ')}; default: ${usualShape}`)
    .option('--config <dir>', 'a model folder, instead of a shape')
    .option('--plans <names>', 'fusion plans, separated by commas; default: the plan of a model on the device', names)
    .option('--steps <shapes>', 'batch x context, separated by commas; default: 1x512, or none if --prompts is given', shapesOf)
    .option('--prompts <shapes>', 'prompts x tokens, separated by commas', shapesOf)
    .addOption(cachesOption())
    .option('--chunk <tokens>', 'prompt tokens processed at a time', positive)
    .option('--invariant <rows>', 'compute everything for this many rows, so that results are identical bit for bit', positive)
    .option('--window <steps>', 'steps per sample, a multiple of 8', positive, 64)
    .addOption(new Option('--dtype <dtype>', 'storage type; default: the type of the configuration').choices(dtypes))
    .addOption(compiledDeviceOption())
    .addOption(onOption())
    .option('--repeats <count>', 'samples of each plan and shape', positive, 9)
    .addOption(
      new Option('--weights <source>', 'random, or those of the model folder')
        .choices(['random', 'checkpoint'] as const)
        .default('random' as const),
    )
    .option('--profile', 'also time every kernel of a step separately')
    .addOption(new Option('--peer <framework>', 'also time the same work in a framework').choices(['torch'] as const))
    .option('--peer-ways <names>', `modes of the peer: ${llamaPeerWays.join(', ')}`, waysOf)
    .option('--save <file>', 'save the times as a baseline for later runs')
    .option('--baseline <file>', 'compare with saved times; exit 1 if something became slower')
    .option('--ratio <x>', 'smallest ratio of medians that counts as a difference', ratioOf, usualRatio)
    .option('--json', 'print the results as JSON')
    .action(async (name, options) => {
      const result = await runBenchLlama(name, options, context())
      const { comparisons } = result
      context().out(options.json ? json(result) : `${llamaTable(result)}${comparisonText(comparisons ?? [])}`)
      expectNotSlower(comparisons, options)
    })
