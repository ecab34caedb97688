/** Calibrating and quantising a pre-LN model with SiLU on the CPU device: its accuracy compared with HF's labels. */
import { beforeAll, expect, it } from 'vitest'
import { openCalibration, readCheckpoint } from '../../src/models/encoder/calibration.js'
import { collect } from '../../src/quant/collect.js'
import { checkScales, formatScales, parseScales, type Scales } from '../../src/quant/scales.js'
import { perSite } from '../../src/quant/sites.js'
import { threshold } from '../../src/quant/thresholds.js'
import { matrices } from '../../src/quant/weight_maxima.js'
import { argmax, ignoredLabel, microF1 } from '../../src/verify/score.js'
import { quantisedF1Drop } from '../../src/verify/tolerance.js'
import { familyCases, familyFolder } from '../models/family.js'
import { openSimtKernels, simtEncoders } from '../models/simt.js'

const name = 'prelayernorm-tokens'
const classes = 4

let scales: Scales
let load: Awaited<ReturnType<typeof simtEncoders>>
const cases = (await familyCases(name)).filter(({ refused }) => refused === undefined)
const given = cases.map(({ input_ids: inputIds = [] }) => ({ inputIds }))

/** Labels of a model with random weights, without tokens on which it is less certain than a trained one. */
const wanted = cases.flatMap(({ logits = [] }) => {
  const spread = Math.sqrt(logits.reduce((sum, value) => sum + value * value, 0) / logits.length)
  return Array.from({ length: logits.length / classes }, (_, token) => {
    const row = logits.slice(token * classes, (token + 1) * classes)
    const [first = 0, second = 0] = row.toSorted((a, b) => b - a)
    return first - second < spread / 2 ? ignoredLabel : argmax(row)
  })
})

beforeAll(async () => {
  load = await simtEncoders({ optimise: '-O1' })
  const checkpoint = await readCheckpoint(familyFolder(name))
  const model = await openCalibration(checkpoint, { ...(await openSimtKernels({ optimise: '-O1' })), dtype: 'f32' })
  const histograms = await collect(model, given).finally(() => model.session.release())
  const layers = histograms.map((layer) => perSite((site) => threshold(layer[site], { name: 'max' })))
  scales = checkScales({ model: checkpoint.identity, method: { name: 'max' }, layers }, 'scales')
})

it('counts most tokens', () => {
  expect(wanted.filter((label) => label !== ignoredLabel).length).toBeGreaterThan(wanted.length / 2)
})

it('observes the input of each layer, which is not a norm of the previous layer, and records that in the file', () => {
  const [first, second] = scales.layers
  expect(second?.x).toBeGreaterThan(0)
  expect(second?.x).not.toBe(first?.outputNorm)
  expect(scales.model.norms).toBe('pre')
  expect(parseScales(formatScales(scales), 'scales')).toEqual(scales)
  // The same numbers are refused for a post-LN model, where both names belong to one activation.
  expect(() => checkScales({ ...scales, model: { ...scales.model, norms: undefined } }, 'scales')).toThrow(
    expect.objectContaining({ code: 'scales.chain' }),
  )
})

it.each([
  ['int8-row', 'f32'],
  ['best-encoder-int8', 'f32'],
  ['ft-v3-mode1', 'bf16'],
  ['ft-v3-mode1-packed', 'f32'],
  ['int8-row', 'bf16'],
] as const)('%s in %s has the labels of HF', async (plan, dtype) => {
  const labelsOf = async (of: Scales): Promise<number[]> => {
    const encoder = await load(familyFolder(name), { plan, scales: of, dtype })
    const results = await encoder.run(given)
    encoder.release()
    return results.flatMap((result) => (result.kind === 'token-classifier' ? result.labelIds : []))
  }
  const score = microF1(await labelsOf(scales), wanted)
  expect(score).toBeGreaterThanOrEqual(1 - quantisedF1Drop.int8)
  // Scales that clip most values cost accuracy.
  const narrow = scales.layers.map((layer) => perSite((site) => layer[site] / 20))
  expect(microF1(await labelsOf({ ...scales, layers: narrow }), wanted)).toBeLessThan(1 - quantisedF1Drop.int8)
})

it('quantises weights by the maxima that scales have for them', async () => {
  const { identity, weightMaxima } = await readCheckpoint(familyFolder(name))
  const own = await weightMaxima()
  const logitsOf = async (weights: Scales['weights']): Promise<number[]> => {
    const encoder = await load(familyFolder(name), { plan: 'best-encoder-int8', scales: { ...scales, weights } })
    const results = await encoder.run(given)
    encoder.release()
    return results.flatMap((result) => (result.kind === 'token-classifier' ? result.logits.flatMap((row) => [...row]) : []))
  }
  const by = (share: number) =>
    own.map((layer) =>
      Object.fromEntries(matrices.map((matrix, i) => [matrix, [...(layer[i] ?? [])].map((amax) => amax * share)])),
    )
  const usual = await logitsOf(undefined)
  expect(identity.layers).toBe(own.length)
  expect(await logitsOf(by(1))).toEqual(usual)
  expect(await logitsOf(by(0.05))).not.toEqual(usual)
})

it('has no plan with an int8 residual, and names the missing layer', async () => {
  await expect(load(familyFolder(name), { plan: 'ft-v3-mode2', scales })).rejects.toMatchObject({ code: 'plan.model' })
})
