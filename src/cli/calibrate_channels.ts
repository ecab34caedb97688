/** Calibration of a model with dynamic quantisation per row: the largest magnitudes of channels, from which smoothing is computed. */
import { resolve } from 'node:path'
import Table from 'cli-table3'
import { usageError } from '../errors.js'
import { calibrateLlama } from '../models/llama/calibration.js'
import { namedFile } from '../output.js'
import { type ChannelMaxima, formatChannels, magnitude } from '../quant/index.js'
import { openKernels } from '../runtime/open.js'
import type { CalibrateOptions } from './calibrate_options.js'
import { readCases } from './cases.js'
import type { CliContext } from './context.js'
import { openOptions } from './opening.js'
import { countProgress } from './progress.js'
import { tokenIds } from './token_ids.js'

/** Flags of the options that choose single scales. */
const ofScales = {
  import: '--import',
  fromCheckpoint: '--from-checkpoint',
  method: '--method',
  percentile: '--percentile',
  weights: '--weights',
  amaxList: '--amax-list',
} as const

/** @throws usage `calibrate.option` for an option that chooses single scales, given for a model with dynamic quantisation per row */
function expectChannelsOnly(options: CalibrateOptions): void {
  const given = (Object.keys(ofScales) as (keyof typeof ofScales)[]).find((name) => options[name] !== undefined)
  if (given === undefined) return
  throw usageError('calibrate.option', `${ofScales[given]} chooses scales, but each row of this model computes its own scale`, {
    hint: 'give --cases and --out: smoothing uses the largest magnitudes of channels',
  })
}

/**
 * Largest magnitudes of the channels of a LLaMA-like model's activations, from which smoothing is computed.
 * @throws usage `calibrate.*`, `run.*`; environment for missing tools or devices
 */
export async function calibrateChannels(model: string, options: CalibrateOptions, context: CliContext): Promise<ChannelMaxima> {
  const { root, signal } = context
  expectChannelsOnly(options)
  const { cases: file } = options
  if (file === undefined) throw usageError('calibrate.input', 'expected cases to run', { hint: '--cases FILE.jsonl' })
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

/** One line per activation: its largest channel, and the median channel. */
export function channelTable({ values }: ChannelMaxima): string {
  const table = new Table({ head: ['activation', 'largest', 'median'], style: { head: [], border: [] } })
  for (const [name, maxima] of Object.entries(values)) {
    const sorted = [...maxima].sort((a, b) => a - b)
    table.push([name, magnitude(sorted.at(-1) ?? 0), magnitude(sorted[Math.floor(sorted.length / 2)] ?? 0)])
  }
  return `${table.toString()}\n`
}
