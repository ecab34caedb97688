/** Steps between graphs that store the value they share differently, and scales of quantised plans. No device. */
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { readManifest } from '../../src/cli/pipeline.js'
import { stepOf, stepsPerUnit } from '../../src/ir/int8_scale.js'
import { assembleBert } from '../../src/models/encoder/bert.js'
import { expectInt8 } from '../../src/models/parts/int8_device.js'
import { findPlan } from '../../src/program/plans.js'
import { perSite } from '../../src/quant/sites.js'
import { randomBert } from './fixtures.js'

const { plans } = await readManifest(fileURLToPath(new URL('../..', import.meta.url)))
const { config } = randomBert({ num_hidden_layers: 2 })
const amax = (layer: number) => perSite((site) => (site === 'x' ? 2 + layer : site === 'outputNorm' ? 3 + layer : 1))
const scales = [amax(0), amax(1)]
const assemble = (plan: string, given: Parameters<typeof assembleBert>[3] = scales) =>
  assembleBert(config, findPlan(plan, plans), false, given).applications

describe('steps between graphs', () => {
  it.each([
    [
      'ft-v2.1',
      ['embeddings', 'remove_padding(embeddings.hidden)', 'layer0', 'layer1', 'restore_padding(layer1.hidden)', 'states'],
    ],
    [
      'ft-v3-mode1',
      ['embeddings', 'col32_from_rows(embeddings.hidden)', 'layer0', 'layer1', 'rows_from_col32(layer1.hidden)', 'states'],
    ],
    [
      'ft-v3-mode2',
      [
        'embeddings',
        'int8_col32_from_rows(embeddings.hidden)',
        'layer0',
        'layer1',
        'rows_from_int8_col32(layer1.hidden)',
        'states',
      ],
    ],
    [
      'ft-v3-mode2-packed',
      [
        'embeddings',
        'remove_padding(embeddings.hidden)',
        'int8_col32_from_rows(embeddings.hidden)',
        'layer0',
        'layer1',
        'rows_from_int8_col32(layer1.hidden)',
        'restore_padding(layer1.hidden)',
        'states',
      ],
    ],
    ['best-encoder-int8', ['embeddings', 'quantise(embeddings.hidden)', 'layer0', 'layer1', 'states']],
  ])('%s', (plan, labels) => {
    const packing = new Set(['packing'])
    expect(assemble(plan).flatMap(({ label }) => (packing.has(label) ? [] : [label]))).toEqual(labels)
  })

  it('carry the scale of the value they quantise', () => {
    const at = (label: string) => assemble('ft-v3-mode2').find((application) => application.label === label)?.attrs
    expect(at('int8_col32_from_rows(embeddings.hidden)')).toEqual({ inverse: stepsPerUnit(2) })
    expect(at('rows_from_int8_col32(layer1.hidden)')).toEqual({ step: stepOf(4) })
    expect(at('layer1')).toMatchObject({ 'x.step': stepOf(3), 'outputNorm.inverse': stepsPerUnit(4), scale: 1 / 8 })
  })

  it('quantise by 0 if all values are zeros', () => {
    const zeros = [perSite(() => 0), perSite(() => 0)]
    for (const { attrs } of assemble('ft-v3-mode1', zeros)) {
      for (const [name, value] of Object.entries(attrs)) if (/(^|\.)(step|inverse)$/.test(name)) expect(value, name).toBe(0)
    }
  })
})

describe('refused are', () => {
  const failure = (act: () => unknown): string => {
    try {
      act()
    } catch (error) {
      return error instanceof Error && 'code' in error ? `${error.code}: ${error.message}` : String(error)
    }
    return 'nothing'
  }

  it('a quantised plan without scales, with too few, and with one that is not a scale', () => {
    expect(failure(() => assembleBert(config, findPlan('int8-row', plans), false))).toBe(
      'run.scales: plan int8-row needs a scale for x of layer0, got none',
    )
    expect(failure(() => assemble('int8-row', scales.slice(1)))).toBe('run.scales: got scales of 1 layers, expected 2')
    const { attentionNorm: _, ...lacking } = amax(1)
    expect(failure(() => assemble('int8-row', [amax(0), lacking]))).toContain('needs a scale for attentionNorm of layer1')
    for (const wrong of [-1, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(failure(() => assemble('int8-row', [amax(0), { ...amax(1), merged: wrong }]))).toContain(`got ${wrong}`)
    }
  })

  it('a plan that has nothing for the layers of the model', () => {
    const other = { ...randomBert({ hidden_act: 'relu' }).config, family: 'prelayernorm' } as const
    expect(failure(() => assembleBert(other, findPlan('ft-v3-mode2', plans), false, scales.slice(1)))).toBe(
      'plan.model: plan ft-v3-mode2 does not cover encoder_layer_pre_relu, the layers of bert',
    )
  })

  it('int8 on a GPU without int8 tensor cores', () => {
    const gpu = { kind: 'cuda', name: 'old GPU', computeCapability: '7.0' } as Parameters<typeof expectInt8>[0]
    expect(failure(() => expectInt8(gpu, 'int8-row'))).toBe(
      'device.int8: plan int8-row multiplies int8, old GPU has compute capability 7.0',
    )
    expect(failure(() => expectInt8({ ...gpu, computeCapability: '7.5' }, 'int8-row'))).toBe('nothing')
    expect(failure(() => expectInt8({ ...gpu, kind: 'simt' }, 'int8-row'))).toBe('nothing')
  })
})
