/**
 * `heddle calibrate`: runs the float model over cases and chooses for every activation the magnitude that becomes 127 in INT8; or
 * takes such choices from a list that was made elsewhere. Everything is checked before the model runs, and files appear when all is done.
 */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { Command, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import Table from 'cli-table3'
import type { FloatType } from '../checkpoint/convert.js'
import { usageError } from '../errors.js'
import { readText } from '../files.js'
import { type BertCheckpoint, openCalibration, readCheckpoint } from '../models/encoder/calibration.js'
import { calibrateLlama } from '../models/llama/calibration.js'
import { checkCases } from '../models/parts/token_cases.js'
import { namedFile } from '../output.js'
import {
  type ChannelMaxima,
  collect,
  defaultPercentile,
  formatAmaxList,
  formatChannels,
  formatScales,
  type Histogram,
  type Method,
  magnitude,
  methodNames,
  parseAmaxList,
  perSite,
  type Scales,
  sites,
  type Thresholds,
  threshold,
  thresholdChart,
} from '../quant/index.js'
import { openKernels } from '../runtime/open.js'
import { readCases } from './cases.js'
import { type CliContext, json } from './context.js'
import { continuesText } from './continues_text.js'
import { type DeviceName, deviceOption, dtypes, openOptions } from './pipeline.js'
import { countProgress } from './progress.js'
import { tokenIds } from './token_ids.js'

export interface CalibrateOptions {
  /** A file of cases, as `heddle run` takes them. */
  readonly cases?: string | undefined
  /** A list of maxima in FasterTransformer v3.0's order, instead of cases. */
  readonly import?: string | undefined
  readonly method?: Method['name'] | undefined
  /** Of the method `percentile`; 99.99 by default. */
  readonly percentile?: number | undefined
  readonly device?: DeviceName | undefined
  /** Storage type of the float model; f32 by default. */
  readonly dtype?: FloatType | undefined
  /** The scales file to write. */
  readonly out: string
  /** A list of maxima to write besides. */
  readonly amaxList?: string | undefined
}

export interface CalibrateResult {
  readonly scales: Scales
  /** What was observed and chosen, by layer. For imported scales the two are the same. */
  readonly layers: readonly Thresholds[]
}

/** @throws usage `calibrate.option` for what chooses single scales, given for a model whose rows are quantised as they are made */
function expectChannelsOnly(options: CalibrateOptions): void {
  const names = { import: '--import', method: '--method', percentile: '--percentile', amaxList: '--amax-list' } as const
  const given = (['import', 'method', 'percentile', 'amaxList'] as const).find((name) => options[name] !== undefined)
  if (given === undefined) return
  throw usageError('calibrate.option', `${names[given]} chooses scales, and rows of this model have scales of their own`, {
    hint: 'give --cases and --out: the largest magnitudes of channels are what smoothing goes by',
  })
}

/**
 * The largest magnitudes of the channels of a LLaMA-like model's activations, which smoothing goes by.
 * @throws usage `calibrate.*`, `run.*`; environment for what the machine lacks
 */
export async function calibrateChannels(model: string, options: CalibrateOptions, context: CliContext): Promise<ChannelMaxima> {
  const { root, signal } = context
  expectChannelsOnly(options)
  const { cases: file } = options
  if (file === undefined) throw usageError('calibrate.input', 'give cases to run', { hint: '--cases FILE.jsonl' })
  const folder = resolve(root, model)
  const cases = await tokenIds(folder, await readCases(file === '-' ? file : resolve(root, file), signal))
  const write = await namedFile(resolve(root, options.out))
  const { device, library, manifest } = await openKernels(options.device, { ...openOptions(context), model: folder })
  try {
    const count = countProgress('calibrate', context)
    const progress = (done: number, total: number): void => count(done, total, 'channels')
    const found = await calibrateLlama(folder, cases, { device, library, manifest, dtype: options.dtype, signal, progress })
    await write(formatChannels(found))
    context.log(`written: ${resolve(root, options.out)}\n`)
    return found
  } finally {
    device.close()
  }
}

/** A line for each activation: its largest channel, and the one in the middle. */
function channelTable({ values }: ChannelMaxima): string {
  const table = new Table({ head: ['activation', 'largest', 'median'], style: { head: [], border: [] } })
  for (const [name, maxima] of Object.entries(values)) {
    const sorted = [...maxima].sort((a, b) => a - b)
    table.push([name, magnitude(sorted.at(-1) ?? 0), magnitude(sorted[Math.floor(sorted.length / 2)] ?? 0)])
  }
  return `${table.toString()}\n`
}

/** @throws usage `calibrate.*`, `run.*`, `scales.*`, `amax.*`, …; environment for what the machine lacks */
export async function calibrate(model: string, options: CalibrateOptions, context: CliContext): Promise<CalibrateResult> {
  const { root } = context
  if ((options.cases === undefined) === (options.import === undefined)) {
    throw usageError('calibrate.input', 'give either cases to run or a list to import', {
      hint: '--cases FILE.jsonl, or --import LIST',
    })
  }
  const method = methodOf(options)
  const folder = resolve(root, model)
  if (!existsSync(folder)) {
    throw usageError('run.model', `there is no model folder ${folder}`, {
      hint: 'a model folder holds config.json, model.safetensors and tokenizer.json',
    })
  }
  const checkpoint = await readCheckpoint(folder, context.signal)
  const amaxList = options.amaxList === undefined ? undefined : resolve(root, options.amaxList)
  const writeScales = await namedFile(resolve(root, options.out))
  const writeAmax = amaxList === undefined ? undefined : await namedFile(amaxList)
  const result =
    options.import === undefined
      ? await observe(checkpoint, folder, method, options, context)
      : await importList(checkpoint, resolve(root, options.import))
  const list = amaxList === undefined ? '' : formatAmaxList(result.scales, await checkpoint.weightMaxima())
  await writeScales(formatScales(result.scales))
  context.log(`written: ${resolve(root, options.out)}\n`)
  await writeAmax?.(list)
  if (amaxList !== undefined) context.log(`written: ${amaxList}\n`)
  return result
}

/** @throws usage `calibrate.percentile` for one outside (0, 100], or of another method */
function methodOf({ method = 'percentile', percentile }: CalibrateOptions): Method {
  if (method !== 'percentile') {
    if (percentile === undefined) return { name: method }
    throw usageError('calibrate.percentile', `the method ${method} has no percentile`, {
      hint: 'leave it out, or use --method percentile',
    })
  }
  const share = percentile ?? defaultPercentile
  if (share > 0 && share <= 100) return { name: method, percentile: share }
  throw usageError('calibrate.percentile', `percentile is ${share}`, { hint: 'more than 0 and at most 100, such as 99.99' })
}

async function observe(
  checkpoint: BertCheckpoint,
  folder: string,
  method: Method,
  { cases: file = '', device: wanted, dtype = 'f32' }: CalibrateOptions,
  context: CliContext,
): Promise<CalibrateResult> {
  const { root, signal } = context
  const { tokenTypes } = checkpoint.config
  const cases = await tokenIds(folder, await readCases(file === '-' ? file : resolve(root, file), context.signal), { tokenTypes })
  checkCases(checkpoint.config, cases, 1)
  const { device, library, manifest } = await openKernels(wanted, { ...openOptions(context), model: folder })
  try {
    const tokens = cases.reduce((sum, { inputIds }) => sum + inputIds.length, 0)
    context.log(`${device.info().name} (${device.kind}), ${dtype}, ${cases.length} cases of ${tokens} tokens\n`)
    const model = await openCalibration(checkpoint, { device, library, manifest, dtype })
    const progress = countProgress('calibrate', context)
    const histograms = await collect(model, cases, { signal, progress }).finally(() => model.session.release())
    // A layer's input has the histogram of the output before it, for which the work is done once.
    const chosen = new Map<Histogram, number>()
    const choose = (histogram: Histogram): number => {
      const value = chosen.get(histogram) ?? threshold(histogram, method)
      chosen.set(histogram, value)
      return value
    }
    const layers = histograms.map((layer) => ({
      amax: perSite((site) => layer[site].amax),
      threshold: perSite((site) => choose(layer[site])),
    }))
    const scales: Scales = {
      model: checkpoint.identity,
      method,
      calibration: { cases: cases.length, tokens, dtype },
      layers: layers.map((layer) => layer.threshold),
    }
    return { scales, layers }
  } finally {
    device.close()
  }
}

async function importList({ identity }: BertCheckpoint, path: string): Promise<CalibrateResult> {
  const text = await readText(path, { code: 'amax.read', hint: 'give a list in the order of FasterTransformer v3.0' })
  const scales = parseAmaxList(text, path, identity)
  return { scales, layers: scales.layers.map((layer) => ({ amax: layer, threshold: layer })) }
}

/** The thresholds, a column a site; with what was observed where that is more. */
function thresholdTable(layers: readonly Thresholds[]): string {
  const table = new Table({ head: ['layer', ...sites], style: { head: [], border: [] } })
  for (const [at, { amax, threshold: chosen }] of layers.entries()) {
    const cell = (site: (typeof sites)[number]): string =>
      chosen[site] < amax[site] ? `${magnitude(chosen[site])}\nof ${magnitude(amax[site])}` : magnitude(chosen[site])
    table.push([String(at), ...sites.map(cell)])
  }
  return `${table.toString()}\n`
}

function percent(text: string): number {
  const value = Number(text)
  if (text.trim() === '' || Number.isNaN(value)) throw new InvalidArgumentError('Expected a number.')
  return value
}

export const calibrateCommand = (context: () => CliContext) =>
  new Command('calibrate')
    .description('choose the scales of INT8 activations, or what smoothing of them goes by, from what a float model computes')
    .argument('<model>', 'a folder with config.json, model.safetensors and tokenizer.json')
    .option('--cases <file>', 'one {"input_ids":[...]}, {"text":"..."} or {"text":"...","pair":"..."} a line, or a labelled set')
    .addOption(new Option('--import <list>', "take the scales from a list in FasterTransformer v3.0's order").conflicts('cases'))
    .addOption(new Option('--method <method>', 'how thresholds are chosen; default: percentile').choices(methodNames))
    .option('--percentile <share>', `of the method percentile; default: ${defaultPercentile}`, percent)
    .addOption(deviceOption())
    .addOption(new Option('--dtype <dtype>', 'storage type of the float model; default: f32').choices(dtypes))
    .requiredOption('--out <file>', 'the scales file to write')
    .option('--amax-list <file>', "also write a list in FasterTransformer v3.0's order")
    .option('--json', 'print the result as JSON instead of a table and a chart')
    .action(async (model, options) => {
      const folder = resolve(context().root, model)
      if (existsSync(folder) && (await continuesText(folder))) {
        const found = await calibrateChannels(model, options, context())
        context().out(options.json ? json(found) : channelTable(found))
        return
      }
      const result = await calibrate(model, options, context())
      if (options.json) context().out(json(result))
      else context().out(`${thresholdTable(result.layers)}${thresholdChart(result.layers)}`)
    })
