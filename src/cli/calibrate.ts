/**
 * `heddle calibrate`: runs the float model over cases and chooses for every activation the magnitude that becomes 127 in INT8. It can also
 * take these magnitudes from a list made elsewhere, or from the quantisers of the checkpoint. Everything is checked before the model
 * runs, and files are written at the end.
 */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { Command, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import Table from 'cli-table3'
import { usageError } from '../errors.js'
import { largestWeights, readCheckpoint } from '../models/encoder/calibration.js'
import { namedFile } from '../output.js'
import {
  defaultPercentile,
  formatAmaxList,
  formatScales,
  magnitude,
  methodNames,
  sites,
  type Thresholds,
  thresholdChart,
} from '../quant/index.js'
import { calibrateChannels, channelTable } from './calibrate_channels.js'
import { type CalibrateOptions, type CalibrateResult, weightScales } from './calibrate_options.js'
import { type Calibrated, imported, methodOf, observed, trained } from './calibrate_sources.js'
import { type CliContext, json } from './context.js'
import { continuesText } from './continues_text.js'
import { deviceOption, dtypes } from './pipeline.js'

/** @throws usage `calibrate.input` for no source of scales, two that exclude each other, or options that do not apply to it */
function expectSource({ cases, import: list, fromCheckpoint = false, weights, method, percentile }: CalibrateOptions): void {
  const from = fromCheckpoint ? '--from-checkpoint' : list === undefined ? undefined : '--import'
  if (cases === undefined ? from === undefined : list !== undefined) {
    throw usageError('calibrate.input', 'expected either cases to run or a list to import', {
      hint: '--cases FILE.jsonl, --import LIST, or --from-checkpoint',
    })
  }
  if (fromCheckpoint && list !== undefined)
    throw usageError('calibrate.input', 'expected either --from-checkpoint or --import, got both', {
      hint: 'each of them has all maxima',
    })
  const how = method === undefined ? (percentile === undefined ? undefined : '--percentile') : '--method'
  if (cases === undefined && how !== undefined) {
    throw usageError('calibrate.input', `${how} applies to calibration by cases, and there are none`, {
      hint: `leave it out: ${from} has the chosen values`,
    })
  }
  if (weights === undefined || from === undefined) return
  throw usageError('calibrate.input', `${from} has the maxima of weights, and --weights would choose others`, {
    hint: 'leave --weights out, or calibrate by --cases alone',
  })
}

/** @throws usage `calibrate.*`, `run.*`, `scales.*`, `amax.*`, …; environment for missing tools or devices */
export async function calibrate(model: string, options: CalibrateOptions, context: CliContext): Promise<CalibrateResult> {
  const { root } = context
  expectSource(options)
  methodOf(options)
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
  const result = await scalesOf({ checkpoint, folder, options, context })
  const list = amaxList === undefined ? '' : formatAmaxList(result.scales, await checkpoint.weightMaxima())
  await writeScales(formatScales(result.scales))
  context.log(`written: ${resolve(root, options.out)}\n`)
  await writeAmax?.(list)
  if (amaxList !== undefined) context.log(`written: ${amaxList}\n`)
  return result
}

async function scalesOf(calibrated: Calibrated): Promise<CalibrateResult> {
  const { checkpoint, options, context } = calibrated
  const { root } = context
  const { cases, weights } = options
  const file = cases === undefined || cases === '-' ? cases : resolve(root, cases)
  if (options.fromCheckpoint === true) return trained(calibrated, file)
  if (options.import !== undefined) return imported(calibrated, resolve(root, options.import))
  const { scales, layers } = await observed(calibrated, file ?? '-')
  return weights === 'per-tensor'
    ? { scales: { ...scales, weights: await largestWeights(checkpoint) }, layers }
    : { scales, layers }
}

/** Table of thresholds, one column per site, with the observed maximum where it is larger. */
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
    .description('choose the scales of INT8 activations, or the channel maxima for smoothing, from the values of a float model')
    .argument('<model>', 'a folder with config.json, model.safetensors and tokenizer.json')
    .option(
      '--cases <file>',
      'one {"input_ids":[...]}, {"text":"..."} or {"text":"...","pair":"..."} per line, or a labelled set',
    )
    .addOption(new Option('--import <list>', "take the scales from a list in FasterTransformer v3.0's order").conflicts('cases'))
    .addOption(
      new Option(
        '--from-checkpoint',
        "take the maxima of the checkpoint's quantisers (_amax); --cases calibrates those it lacks",
      ).conflicts('import'),
    )
    .addOption(new Option('--method <method>', 'method that chooses thresholds; default: percentile').choices(methodNames))
    .option('--percentile <share>', `with --method percentile; default: ${defaultPercentile}`, percent)
    .addOption(deviceOption())
    .addOption(new Option('--dtype <dtype>', 'storage type of the float model; default: f32').choices(dtypes))
    .addOption(new Option('--weights <scales>', 'scales of weights; default: per-channel').choices(weightScales))
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
