/**
 * Accuracy loss of a quantised token classifier: calibrated on some sentences of its labelled set, each INT8 plan is scored on the others
 * next to the float32 model, which has no golden for that part of the set.
 */
import { join } from 'node:path'
import type { FloatType } from '../checkpoint/convert.js'
import type { Manifest } from '../emit/manifest/manifest.js'
import { type Graph, isQuantised } from '../ir/graph.js'
import { largestWeights, openCalibration, readCheckpoint } from '../models/encoder/calibration.js'
import { type Encoder, loadEncoder } from '../models/encoder/encoder_pipeline.js'
import { defaultPlan } from '../program/plans.js'
import { collect } from '../quant/collect.js'
import { defaultBins } from '../quant/histogram.js'
import { checkScales, type Scales } from '../quant/scales.js'
import { perSite } from '../quant/sites.js'
import { type Method, threshold } from '../quant/thresholds.js'
import type { KernelSource } from '../runtime/library.js'
import type { NativeDevice } from '../runtime/native.js'
import type { CheckResult } from './conformance.js'
import { readTestSet } from './model.js'
import { microF1 } from './score.js'
import { quantisedF1Drop } from './tolerance.js'

export interface QuantisedConfig {
  readonly device: NativeDevice
  readonly library: KernelSource
  readonly manifest: Manifest
  readonly signal?: AbortSignal | undefined
}

/** Number of sentences used for calibration; they are not scored. */
const calibrated = 64

/** Sentences per batch. */
const batch = 16

type Planned = Readonly<Record<string, Graph>>

/** Names of the plans with int8 weights. */
export const quantisedPlans = ({ plans = {} }: Pick<Manifest, 'plans'>): string[] =>
  Object.keys(plans).filter((name) => Object.values(plans[name] ?? {}).some(isQuantised))

/** Plans whose activations have calibrated scales: those of encoders. */
export const calibratedPlans = ({ plans = {} }: Pick<Manifest, 'plans'>): string[] =>
  Object.keys(plans).filter((name) => Object.values(plans[name] ?? {}).some(({ scales = {} }) => Object.keys(scales).length > 0))

/** True if layers pass on only int8 values. */
const hasInt8Residual = (graphs: Planned): boolean =>
  Object.values(graphs).some((graph) => isQuantised(graph) && graph.values[graph.inputs.x ?? -1]?.dtype === 'i8')

/**
 * One result per plan. @param dir a model folder with `test-set.json` @param sentences number of scored sentences, by default all
 * @throws usage for a folder that cannot be read, and errors of the device
 */
export async function checkQuantised(
  config: QuantisedConfig,
  dir: string,
  {
    dtype,
    plans,
    method = { name: 'max' },
    weights,
    bins,
    sentences,
  }: {
    readonly dtype: FloatType
    readonly plans: readonly string[]
    readonly method?: Method
    /** One scale for a whole matrix of weights; one for each output channel by default. */
    readonly weights?: 'per-tensor' | undefined
    /** Bins of the histograms that scales are chosen from. */
    readonly bins?: number | undefined
    readonly sentences?: number | undefined
  },
  name: string,
): Promise<CheckResult[]> {
  const { items } = await readTestSet(join(dir, 'test-set.json'))
  const [used, scored] = [items.slice(0, calibrated), items.slice(calibrated).slice(0, sentences)]
  const scales = await scalesOf(
    config,
    dir,
    used.map((item) => item.input_ids),
    { method, bins, weights },
  )
  const score = async (plan: string, type: FloatType): Promise<number> => {
    config.signal?.throwIfAborted()
    const encoder = await loadEncoder(dir, { ...config, dtype: type, plan, scales })
    try {
      return await f1Of(encoder, scored)
    } finally {
      encoder.release()
    }
  }
  const float32 = await score(defaultPlan, 'f32')
  const results: CheckResult[] = []
  for (const plan of plans) {
    const found = await score(plan, dtype)
    const allowed = quantisedF1Drop[hasInt8Residual(config.manifest.plans?.[plan] ?? {}) ? 'int8' : 'float']
    const detail = `${found.toFixed(4)}, float32 ${float32.toFixed(4)}, allowed drop ${allowed}`
    results.push({ name: `${name} ${plan} F1`, passed: found >= float32 - allowed, detail })
  }
  return results
}

async function f1Of(
  encoder: Encoder,
  items: readonly { readonly input_ids: readonly number[]; readonly labels: readonly number[] }[],
): Promise<number> {
  const results = await encoder.run(
    items.map((item) => ({ inputIds: item.input_ids })),
    { batch },
  )
  const predicted = results.flatMap((result) => (result.kind === 'token-classifier' ? result.labelIds : []))
  return microF1(
    predicted,
    items.flatMap((item) => item.labels),
  )
}

async function scalesOf(
  { device, library, manifest, signal }: QuantisedConfig,
  dir: string,
  cases: readonly (readonly number[])[],
  // The largest magnitude needs no histogram.
  {
    method,
    bins = method.name === 'max' ? 1 : defaultBins,
    weights,
  }: { readonly method: Method; readonly bins?: number | undefined; readonly weights: 'per-tensor' | undefined },
): Promise<Scales> {
  const checkpoint = await readCheckpoint(dir)
  const model = await openCalibration(checkpoint, { device, library, manifest, dtype: 'f32' })
  const sequences = cases.map((inputIds) => ({ inputIds }))
  const histograms = await collect(model, sequences, { bins, signal }).finally(() => model.session.release())
  const layers = histograms.map((layer) => perSite((site) => threshold(layer[site], method)))
  const given = weights === 'per-tensor' ? { weights: await largestWeights(checkpoint) } : {}
  return checkScales({ model: checkpoint.identity, method, layers, ...given }, 'scales')
}
