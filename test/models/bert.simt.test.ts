import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import type { EncoderResult } from '../../src/models/encoder/encoder_pipeline.js'
import { restorePunctuation } from '../../src/models/encoder/punctuation.js'
import { loadTokenizer } from '../../src/text/tokenizer.js'
import { compare, relativeL2 } from '../../src/verify/compare.js'
import { argmax, microF1 } from '../../src/verify/score.js'
import { modelTolerance } from '../../src/verify/tolerance.js'
import { modelTypes } from '../turns.js'
import { exampleModel, golden, goldenSentences, interpretBert, randomBert, writeModel } from './fixtures.js'
import { simtEncoders } from './simt.js'

let load: Awaited<ReturnType<typeof simtEncoders>>
beforeAll(async () => {
  load = await simtEncoders({ optimise: '-O1' })
})

const cases = (sequences: readonly (readonly number[])[]) => sequences.map((inputIds) => ({ inputIds }))
const rowsOf = (result: EncoderResult | undefined): number[] =>
  (result?.kind === 'encoder' ? result.states : result?.kind === 'token-classifier' ? result.logits : []).flatMap((row) => [
    ...row,
  ])
const labelsOf = (result: EncoderResult | undefined): readonly number[] =>
  result?.kind === 'token-classifier' ? result.labelIds : []

describe.each(modelTypes())('the example model on simt in %s', (dtype) => {
  it('matches the golden logits and labels', async () => {
    const encoder = await load(exampleModel, { dtype })
    const sentences = await goldenSentences()
    const results = await encoder.run(cases(sentences))
    const logits = (await golden())('logits')
    const [, seq = 0, classes = 0] = logits.shape
    const bound = modelTolerance(dtype, encoder.config.layers)
    const [found, wanted, labels, expected]: [number[], number[], number[], number[]] = [[], [], [], []]
    for (const [b, sentence] of sentences.entries()) {
      found.push(...rowsOf(results[b]))
      labels.push(...labelsOf(results[b]))
      for (let s = 0; s < sentence.length; s++) {
        const row = Array.from(logits.data).slice((b * seq + s) * classes, (b * seq + s + 1) * classes)
        wanted.push(...row)
        expected.push(argmax(row))
      }
    }
    const result = compare(found, wanted, { absolute: bound.absolute, relative: 0 })
    expect(result.passed, result.summary).toBe(true)
    expect(relativeL2(found, wanted)).toBeLessThanOrEqual(bound.relativeL2)
    expect(labels.filter((label, i) => label !== expected[i]).length).toBeLessThanOrEqual(bound.labelsDiffer * labels.length)
    expect(labels).toHaveLength(expected.length)
    encoder.release()
  })
})

describe('the example model on simt', () => {
  it('scores on the test set as the float32 model did', async () => {
    const encoder = await load(exampleModel)
    const set = JSON.parse(await readFile(join(exampleModel, 'test-set.json'), 'utf8')) as {
      float32: { f1: number }
      items: { input_ids: number[]; labels: number[] }[]
    }
    const results = await encoder.run(cases(set.items.map((item) => item.input_ids)), { batch: 16 })
    const f1 = microF1(
      results.flatMap(labelsOf),
      set.items.flatMap((item) => item.labels),
    )
    expect(Math.abs(f1 - set.float32.f1)).toBeLessThanOrEqual(modelTolerance('f32', encoder.config.layers).f1)
    encoder.release()
  })

  it('restores the punctuation of a verse', async () => {
    const encoder = await load(exampleModel)
    const text = await restorePunctuation(
      encoder,
      await loadTokenizer(exampleModel),
      'and this stone which I have set for a pillar shall be the house of God',
    )
    expect(text.replaceAll(/[,.;:?]/g, '')).toBe('and this stone which I have set for a pillar shall be the house of God')
    expect(text).toMatch(/pillar,.*God\.$/)
    encoder.release()
  })

  it('stops when the signal aborts while it runs', async () => {
    const encoder = await load(exampleModel)
    const [sentence = []] = await goldenSentences()
    const signal = AbortSignal.timeout(1)
    await expect(encoder.run(cases(Array.from({ length: 256 }, () => sentence)), { signal })).rejects.toMatchObject({
      name: 'TimeoutError',
    })
    await expect(encoder.run(cases([sentence]))).resolves.toHaveLength(1)
    encoder.release()
  })
})

describe('random models on simt against the interpreter', () => {
  it.each([
    { hidden_size: 128, num_attention_heads: 2 },
    { hidden_size: 130, num_attention_heads: 5, hidden_act: 'relu' },
    { hidden_size: 192, num_attention_heads: 3, hidden_act: 'gelu_new' },
    { hidden_size: 208, num_attention_heads: 8, intermediate_size: 77 },
    { hidden_size: 768, num_attention_heads: 12, intermediate_size: 1031 },
    { hidden_size: 1024, num_attention_heads: 8 },
    { hidden_size: 1536, num_attention_heads: 12 },
  ])('%o', async (changes) => {
    const model = randomBert(changes, true)
    const { config } = model
    const sequences = [[3, 1, 4, 1, 5, 9, 2, 6, 5], [9], [6, 5, 3, 49]]
    const seq = Math.max(...sequences.map(({ length }) => length))
    const values = await interpretBert(config, { tensors: model.tensors }, sequences)
    const expected = values.get('states')?.data ?? []
    const wanted = sequences.flatMap(({ length }, b) =>
      Array.from(expected).slice(b * seq * config.hidden, (b * seq + length) * config.hidden),
    )
    const dir = await writeModel(model)
    try {
      for (const dtype of modelTypes()) {
        // An odd padded length in float32 takes the scalar tails.
        const encoder = await load(dir, { dtype, seqStep: dtype === 'f32' ? 1 : 8 })
        const results = await encoder.run(cases(sequences))
        const bound = modelTolerance(dtype, config.layers)
        const found = results.flatMap(rowsOf)
        const result = compare(found, wanted, { absolute: bound.absolute, relative: 0 })
        expect(result.passed, `${dtype}: ${result.summary}`).toBe(true)
        const pooled = results.flatMap((item) => (item.kind === 'encoder' ? [...(item.pooled ?? [])] : []))
        const pooledResult = compare(pooled, values.get('pooled')?.data ?? [], { absolute: bound.absolute, relative: 0 })
        expect(pooledResult.passed, `${dtype} pooled: ${pooledResult.summary}`).toBe(true)
        encoder.release()
      }
    } finally {
      await rm(dir, { recursive: true })
    }
  })

  it('gives a case the same bits alone and in any batch', async () => {
    const dir = await writeModel(randomBert({ num_hidden_layers: 2 }))
    try {
      const encoder = await load(dir, { dtype: 'f16' })
      const [alone] = await encoder.run(cases([[7, 8, 9]]))
      const others = [
        [1, 2, 3, 4, 5, 6],
        [7, 8, 9],
        [2, 2],
      ]
      const together = await encoder.run(cases(others))
      const turned = await encoder.run(cases(others.toReversed()))
      expect(rowsOf(together[1])).toEqual(rowsOf(alone))
      expect(turned.map(rowsOf).toReversed()).toEqual(together.map(rowsOf))
      encoder.release()
    } finally {
      await rm(dir, { recursive: true })
    }
  })
})
