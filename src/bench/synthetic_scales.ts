/**
 * Scales for quantised plans of a model with random weights: the largest magnitudes of one random sequence, so that int8 values
 * spread over their range. Power, and with it the clock, depends on that.
 */
import { layouts } from '../../specs/index.js'
import { isQuantised } from '../ir/graph.js'
import type { LayerScales } from '../models/encoder/bert.js'
import { calibrationModel } from '../models/encoder/calibration.js'
import { findPlan } from '../program/plans.js'
import { collect } from '../quant/collect.js'
import { perSite } from '../quant/sites.js'
import { openSession } from '../runtime/session.js'
import { integer, random } from '../verify/random.js'
import type { EncoderBench } from './candidates.js'
import { syntheticWeights } from './synthetic.js'

/** Tokens of the sequence. */
const tokens = 32

/** Undefined when no plan of the benchmark quantises. @throws usage `plan.unknown` */
export async function syntheticScales(
  { device, library, manifest, config, dtype, plans, signal }: EncoderBench,
  onStage: (stage: string) => void = () => {},
): Promise<LayerScales | undefined> {
  for (const name of plans) findPlan(name, manifest.plans)
  const quantises = plans.some((name) => Object.values(manifest.plans?.[name] ?? {}).some(isQuantised))
  if (!quantises) return undefined
  onStage('calibrating')
  const session = await openSession({ device, library, manifest, layouts, weights: syntheticWeights(config, dtype) })
  try {
    const next = random('calibration')
    const inputIds = Array.from({ length: Math.min(tokens, config.positions) }, () => integer(next, 0, config.vocab - 1))
    // Only the largest magnitudes are needed.
    const histograms = await collect(calibrationModel(config, session, dtype), [{ inputIds }], { bins: 1, signal })
    return histograms.map((layer) => perSite((site) => layer[site].amax))
  } finally {
    session.release()
  }
}
