/** Sources of scales: values of a float model over cases, a list of another system, and quantiser states of a checkpoint. */
import { usageError } from '../errors.js'
import { readText } from '../files.js'
import { type BertCheckpoint, openCalibration } from '../models/encoder/calibration.js'
import { statesOfSite } from '../models/encoder/quantiser_states.js'
import { withoutMasks } from '../models/parts/masks.js'
import { checkCases } from '../models/parts/token_cases.js'
import {
  collect,
  defaultPercentile,
  givenMaxima,
  type Histogram,
  type Method,
  matrices,
  parseAmaxList,
  perSite,
  type Scales,
  type Site,
  sites,
  type Thresholds,
  threshold,
  type WeightMaxima,
} from '../quant/index.js'
import { openKernels } from '../runtime/open.js'
import type { CalibrateOptions, CalibrateResult } from './calibrate_options.js'
import { readCases } from './cases.js'
import type { CliContext } from './context.js'
import { openOptions } from './opening.js'
import { countProgress } from './progress.js'
import { tokenIds } from './token_ids.js'

/** A model and the options that choose its scales; paths are absolute. */
export interface Calibrated {
  readonly checkpoint: BertCheckpoint
  readonly folder: string
  readonly options: CalibrateOptions
  readonly context: CliContext
}

/** The method that chooses thresholds. @throws usage `calibrate.percentile` for one outside (0, 100], or of another method */
export function methodOf({ method = 'percentile', percentile }: CalibrateOptions): Method {
  if (method !== 'percentile') {
    if (percentile === undefined) return { name: method }
    throw usageError('calibrate.percentile', `method ${method} has no percentile`, {
      hint: 'leave it out, or use --method percentile',
    })
  }
  const share = percentile ?? defaultPercentile
  if (share > 0 && share <= 100) return { name: method, percentile: share }
  throw usageError('calibrate.percentile', `expected a percentile in (0, 100], got ${share}`, { hint: 'such as 99.99' })
}

/** Scales from the values that the float model computes for the cases. @throws usage `calibrate.*`, `run.*`; environment for missing devices */
export async function observed({ checkpoint, folder, options, context }: Calibrated, file: string): Promise<CalibrateResult> {
  const { signal } = context
  const { device: wanted, dtype = 'f32' } = options
  const method = methodOf(options)
  const { tokenTypes } = checkpoint.config
  const unmasked = withoutMasks(await tokenIds(folder, await readCases(file, signal), { tokenTypes }))
  const cases = unmasked.map(({ item, pairs }) => ({ ...item, pairs }))
  checkCases(
    checkpoint.config,
    unmasked.map(({ item }) => item),
    1,
  )
  const { device, library, manifest } = await openKernels(wanted, { ...openOptions(context), model: folder })
  try {
    const tokens = cases.reduce((sum, { inputIds }) => sum + inputIds.length, 0)
    context.log(`${device.info().name} (${device.kind}), ${dtype}, ${cases.length} cases of ${tokens} tokens\n`)
    const model = await openCalibration(checkpoint, {
      device,
      library,
      manifest,
      dtype,
      masked: cases.some(({ pairs }) => pairs !== undefined),
    })
    const progress = countProgress('calibrate', context)
    const histograms = await collect(model, cases, { signal, progress }).finally(() => model.session.release())
    // A layer's input shares the histogram of the previous layer's output, so its threshold is computed once.
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

/** Scales of a list. @throws usage `amax.*`, `scales.*`; `quant.maxima` for weights that it would set to 0 */
export async function imported({ checkpoint, context }: Calibrated, path: string): Promise<CalibrateResult> {
  const text = await readText(path, { code: 'amax.read', hint: 'give a list in the order of FasterTransformer v3.0' })
  const scales = parseAmaxList(text, path, checkpoint.identity)
  await logWeights(scales.weights ?? [], checkpoint, context)
  return { scales, layers: scales.layers.map((layer) => ({ amax: layer, threshold: layer })) }
}

/**
 * Scales that training left in the checkpoint; for sites without one, scales calibrated from cases.
 * @param file of cases, if any
 * @throws usage `calibrate.state`, `calibrate.missing` naming the states that the checkpoint lacks; errors of `observed`
 */
export async function trained(calibrated: Calibrated, file: string | undefined): Promise<CalibrateResult> {
  const { checkpoint, context } = calibrated
  const { layers: known, weights } = await checkpoint.trainedMaxima()
  const missing = known.flatMap((layer, at) => sites.flatMap((site) => (layer[site] === undefined ? [{ at, site }] : [])))
  if (missing.length > 0 && file === undefined) throw missingSites(checkpoint, missing)
  const found = missing.length > 0 && file !== undefined ? await observed(calibrated, file) : undefined
  const layers = known.map((layer, at): Thresholds => {
    const of = (which: keyof Thresholds) => perSite((site) => layer[site] ?? found?.layers[at]?.[which][site] ?? Number.NaN)
    return { amax: of('amax'), threshold: of('threshold') }
  })
  const all = known.length * sites.length
  context.log(
    `${all - missing.length} of ${all} activations have the maxima of the checkpoint's quantisers` +
      `${missing.length > 0 ? `; ${missing.length} are calibrated: ${listed(checkpoint, missing)}` : ''}\n`,
  )
  await logWeights(weights, checkpoint, context)
  const given = weights.some((layer) => Object.keys(layer).length > 0) ? { weights } : {}
  const calibration = found?.scales.calibration
  return {
    scales: {
      model: checkpoint.identity,
      method: { name: 'imported' },
      ...(calibration === undefined ? {} : { calibration }),
      layers: layers.map(({ threshold }) => threshold),
      ...given,
    },
    layers,
  }
}

interface MissingSite {
  readonly at: number
  readonly site: Site
}

/** Number of missing sites that are named. */
const shownSites = 3

function listed({ config }: BertCheckpoint, missing: readonly MissingSite[]): string {
  const names = missing.slice(0, shownSites).map(({ at, site }) => {
    const [state] = statesOfSite(config, at, site)
    return `${site} of layer ${at}${state === undefined ? '' : ` (${state})`}`
  })
  return `${names.join(', ')}${missing.length > shownSites ? ` and ${missing.length - shownSites} more` : ''}`
}

const missingSites = (checkpoint: BertCheckpoint, missing: readonly MissingSite[]) =>
  usageError('calibrate.missing', `the checkpoint has no maximum of ${listed(checkpoint, missing)}`, {
    hint: 'also give --cases FILE.jsonl, which calibrates the missing ones',
  })

/** Logs a line about weights whose given maxima differ from their own. @throws usage `quant.maxima` */
async function logWeights(weights: readonly WeightMaxima[], checkpoint: BertCheckpoint, { log }: CliContext): Promise<void> {
  const own = await checkpoint.weightMaxima()
  const { config } = checkpoint
  let [channels, others] = [0, 0]
  for (const [layer, maxima] of own.entries()) {
    for (const [i, matrix] of matrices.entries()) {
      const ofWeights = maxima[i] ?? new Float32Array()
      const taken = givenMaxima(`${matrix} of layer ${layer}`, ofWeights, weights[layer]?.[matrix])
      channels += ofWeights.length
      others += taken.reduce((count, amax, channel) => count + (amax === ofWeights[channel] ? 0 : 1), 0)
    }
  }
  const what =
    others === 0
      ? 'all have the maxima of the weights themselves'
      : `${others} have maxima that differ from those of their weights`
  log(`${channels} channels of weights in ${config.layers} layers: ${what}\n`)
}
