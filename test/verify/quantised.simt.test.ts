/** Accuracy of the example model under INT8 plans on the CPU device, and with a wrong scale. */
import { beforeAll, describe, expect, it } from 'vitest'
import { checkQuantised } from '../../src/verify/quantised.js'
import { exampleModel } from '../models/fixtures.js'
import { openSimtKernels } from '../models/simt.js'

/** Emulated tensor cores are slow; `heddle selftest` scores all on a GPU. */
const sentences = 96

let simt: Awaited<ReturnType<typeof openSimtKernels>>
beforeAll(async () => {
  simt = await openSimtKernels({ optimise: '-O1' })
})

describe('the example model under INT8', () => {
  it('keeps its F1 score within the bound', async () => {
    const plans = ['ft-v3-mode1-packed', 'ft-v3-mode2-packed', 'int8-row', 'best-encoder-int8']
    const results = await checkQuantised(simt, exampleModel, { dtype: 'f32', plans, sentences }, 'example')
    expect(results.filter(({ passed }) => !passed)).toEqual([])
    expect(results).toHaveLength(plans.length)
  })

  it('keeps it with one scale per weight matrix', async () => {
    const plans = ['ft-v3-mode2-packed', 'best-encoder-int8']
    const config = { dtype: 'f32', plans, sentences, weights: 'per-tensor' } as const
    const results = await checkQuantised(simt, exampleModel, config, 'example')
    expect(results.filter(({ passed }) => !passed)).toEqual([])
    expect(results).toHaveLength(plans.length)
  })

  it('loses it when activations are clipped at their medians', async () => {
    const method = { name: 'percentile', percentile: 50 } as const
    const [result] = await checkQuantised(
      simt,
      exampleModel,
      { dtype: 'f32', plans: ['ft-v3-mode2-packed'], method, bins: 256, sentences },
      'example',
    )
    expect(result?.passed).toBe(false)
  })
})
