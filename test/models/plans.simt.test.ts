/**
 * Every plan equals unfused on the CPU device, token by token: ragged lengths around a warp and a full one, in every storage type, for head sizes
 * with and without tensor cores. The reference is the interpreter, so unfused has the same tolerance.
 */
import { rm } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { readManifest } from '../../src/cli/pipeline.js'
import { bertPlans } from '../../src/models/assembly/layer_graphs.js'
import { readCheckpoint } from '../../src/models/encoder/calibration.js'
import type { EncoderResult } from '../../src/models/encoder/encoder_pipeline.js'
import type { Scales } from '../../src/quant/scales.js'
import { perSite } from '../../src/quant/sites.js'
import { compare } from '../../src/verify/compare.js'
import { quantisedPlans } from '../../src/verify/quantised.js'
import { modelTolerance } from '../../src/verify/tolerance.js'
import { inTurn, modelTypes } from '../turns.js'
import { exampleModel, goldenSentences, interpretBert, randomBert, writeModel } from './fixtures.js'
import { simtEncoders } from './simt.js'

const { plans } = await readManifest(fileURLToPath(new URL('../..', import.meta.url)))

let load: Awaited<ReturnType<typeof simtEncoders>>
beforeAll(async () => {
  load = await simtEncoders()
})

const full = 64
const lengths = [31, 1, full, 33, 32]
const sequences = lengths.map((length, i) => Array.from({ length }, (_, s) => (7 * s + 3 * i) % 50))
const cases = sequences.map((inputIds) => ({ inputIds }))
const rowsOf = (results: readonly EncoderResult[]): number[] =>
  results.flatMap((result) =>
    (result.kind === 'encoder' ? result.states : result.kind === 'token-classifier' ? result.logits : []).flatMap((row) => [
      ...row,
    ]),
  )

const models = [
  { hidden_size: 128, num_attention_heads: 2 },
  { hidden_size: 128, num_attention_heads: 4, hidden_act: 'gelu_new' },
  { hidden_size: 256, num_attention_heads: 2, hidden_act: 'relu' },
  { hidden_size: 130, num_attention_heads: 5, hidden_act: 'relu' },
  { hidden_size: 208, num_attention_heads: 8, intermediate_size: 77 },
]

/** Plans of floats; those of int8 have separate tests, and `best-decoder` has the layers of `best-encoder`. */
const floatPlans = bertPlans(plans).filter((plan) => !quantisedPlans({ plans }).includes(plan) && plan !== 'best-decoder')

describe.each(inTurn(models))('%o', (changes) => {
  it.each(floatPlans)('%s computes the model', async (plan) => {
    const model = randomBert({ max_position_embeddings: full, ...changes }, true)
    const { config } = model
    const values = await interpretBert(config, { tensors: model.tensors }, sequences)
    const states = Array.from(values.get('states')?.data ?? [])
    const wanted = lengths.flatMap((length, b) => states.slice(b * full * config.hidden, (b * full + length) * config.hidden))
    const dir = await writeModel(model)
    try {
      for (const dtype of modelTypes()) {
        const encoder = await load(dir, { dtype, plan })
        const results = await encoder.run(cases)
        const bound = { absolute: modelTolerance(dtype, config.layers).absolute, relative: 0 }
        const found = compare(rowsOf(results), wanted, bound)
        expect(found.passed, `${dtype}: ${found.summary}`).toBe(true)
        const pooled = results.flatMap((item) => (item.kind === 'encoder' ? [...(item.pooled ?? [])] : []))
        const head = compare(pooled, values.get('pooled')?.data ?? [], bound)
        expect(head.passed, `${dtype} pooled: ${head.summary}`).toBe(true)
        encoder.release()
      }
    } finally {
      await rm(dir, { recursive: true })
    }
  })
})

describe('the example model', () => {
  it('has the labels of unfused under every plan', async () => {
    const sentences = (await goldenSentences()).map((inputIds) => ({ inputIds }))
    const labels = async (plan: string) => {
      const encoder = await load(exampleModel, { plan })
      const results = await encoder.run(sentences)
      encoder.release()
      return results.map((result) => (result.kind === 'token-classifier' ? result.labelIds : []))
    }
    const expected = await labels('unfused')
    for (const plan of inTurn(floatPlans)) expect(await labels(plan), plan).toEqual(expected)
  })
})

describe('launches of a layer', () => {
  const counted = [
    ['unfused', 8, 18],
    ['ft-v1', 8, 6],
    ['ft-v2.1', 6, 6],
    ['best-encoder', 0, 7],
    ['best-encoder-library', 3, 4],
    ['auto', 0, 7],
    // Generated matmuls are kernels too. Mode 1 quantises inputs of matmuls in two separate kernels.
    ['ft-v3-mode1', 0, 6 + 9],
    ['ft-v3-mode1-packed', 0, 6 + 9],
    ['ft-v3-mode2', 0, 6 + 7],
    ['ft-v3-mode2-2r4r4-packed', 0, 6 + 7],
    ['int8-row', 8, 7],
    ['best-encoder-int8', 0, 7],
  ] as const
  it.each(inTurn(counted))('%s has %i matmuls and %i kernels', async (plan, matmuls, kernels) => {
    const encoder = await load(exampleModel, { plan, scales: await anyScales() })
    const { steps } = await encoder.program({ batch: 2, seq: 16 })
    const layer = steps.filter(({ label }) => label.startsWith('layer1/'))
    expect(layer.filter(({ kind }) => kind === 'matmul')).toHaveLength(matmuls)
    expect(layer.filter(({ kind }) => kind === 'kernel')).toHaveLength(kernels)
    encoder.release()
  })
})

/** Arbitrary scales for the example model: the launches do not depend on them. */
async function anyScales(): Promise<Scales> {
  const { identity, config } = await readCheckpoint(exampleModel)
  const layers = Array.from({ length: config.layers }, () => perSite(() => 1))
  return { model: identity, method: { name: 'imported' }, layers }
}

describe('a packed batch', () => {
  it('gives a case the same bits alone and in any batch', async () => {
    const dir = await writeModel(randomBert({ max_position_embeddings: full, num_hidden_layers: 2 }))
    try {
      const encoder = await load(dir, { dtype: 'f16', plan: 'best-encoder' })
      const together = await encoder.run(cases)
      const turned = await encoder.run(cases.toReversed())
      expect(turned.map((result) => rowsOf([result])).toReversed()).toEqual(together.map((result) => rowsOf([result])))
      for (const [i, one] of cases.entries()) {
        const [alone] = await encoder.run([one])
        expect(rowsOf(alone === undefined ? [] : [alone])).toEqual(rowsOf(together.slice(i, i + 1)))
      }
      encoder.release()
    } finally {
      await rm(dir, { recursive: true })
    }
  })

  it('refuses an empty sequence before anything runs', async () => {
    const encoder = await load(exampleModel, { plan: 'best-encoder' })
    await expect(encoder.run([{ inputIds: [5] }, { inputIds: [] }])).rejects.toMatchObject({
      code: 'run.sequence',
      message: expect.stringContaining('case 1 is empty'),
    })
    encoder.release()
  })
})
