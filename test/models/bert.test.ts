import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readSafetensors, type StoredTensor } from '../../src/checkpoint/safetensors.js'
import { HeddleError } from '../../src/errors.js'
import { assembleBert, bertWeights } from '../../src/models/encoder/bert.js'
import { readBertConfig } from '../../src/models/encoder/config.js'
import { findPlan } from '../../src/program/plans.js'
import { compare } from '../../src/verify/compare.js'
import { tolerance } from '../../src/verify/tolerance.js'
import { exampleModel, golden, goldenSentences, held, interpretBert, randomBert } from './fixtures.js'

describe('the example model, interpreted', () => {
  it('agrees with the golden values on two sentences of unequal length', async () => {
    const config = await readBertConfig(join(exampleModel, 'config.json'))
    const file = await readSafetensors(join(exampleModel, 'model.safetensors'))
    const sentences = (await goldenSentences()).slice(0, 2)
    expect(sentences[0]?.length).not.toBe(sentences[1]?.length)
    const values = await interpretBert(config, file, sentences)
    const tensor = await golden()
    const bound = tolerance({ dtype: 'f32', class: 'model', length: config.layers })
    const seq = Math.max(...sentences.map((sentence) => sentence.length))
    for (const [value, name] of [
      ['embeddings.hidden', 'embeddings'],
      [`layer${config.layers - 1}.hidden`, 'last_hidden_state'],
      ['logits', 'logits'],
    ] as const) {
      const { data, shape } = tensor(name)
      const [, rows = 0, width = 0] = shape
      for (const [b, sentence] of sentences.entries()) {
        const wanted = Array.from(data).slice(b * rows * width, (b * rows + sentence.length) * width)
        const found = Array.from(values.get(value)?.data ?? []).slice(b * seq * width, (b * seq + sentence.length) * width)
        const result = compare(found, wanted, bound)
        expect(result.passed, `${name}: ${result.summary}`).toBe(true)
        const wrong = found.with(7, (found[7] ?? 0) + 1e3 * bound.absolute)
        expect(compare(wrong, wanted, bound).passed).toBe(false)
      }
    }
  })
})

describe('bertWeights', () => {
  const model = randomBert({}, true)
  const file = (tensors: Iterable<readonly [string, StoredTensor]>) => ({ tensors: new Map(tensors) })
  const failure = (tensors: Iterable<readonly [string, StoredTensor]>): unknown => {
    try {
      bertWeights(model.config, file(tensors), 'f32')
      return undefined
    } catch (error) {
      return error instanceof HeddleError ? `${error.code}: ${error.message}` : error
    }
  }

  it('finds tensors with and without prefix, and by their old layer norm names', async () => {
    const plain = await held(bertWeights(model.config, file(model.tensors), 'f32'))
    const renamed = [...model.tensors].map(([name, tensor]) => {
      const old = name.replace('LayerNorm.weight', 'LayerNorm.gamma').replace('LayerNorm.bias', 'LayerNorm.beta')
      return [`bert.${old}`, tensor] as const
    })
    expect(await held(bertWeights(model.config, file(renamed), 'f32'))).toEqual(plain)
    expect(Object.keys(plain)).toContain('pooler.dense.weight')
  })

  it('names the tensor, the expected and the actual value', () => {
    const name = 'encoder.layer.0.intermediate.dense.weight'
    const tensor = model.tensors.get(name)
    if (tensor === undefined) throw new Error('the model lacks a tensor')
    const others = [...model.tensors].filter(([other]) => other !== name)
    expect(failure(others)).toBe(`weights.missing: tensor ${name} [96, 128] is missing`)
    expect(failure([...others, [name, { ...tensor, shape: [128, 96] }]])).toBe(
      `weights.shape: tensor ${name} has shape [128, 96], the configuration expects [96, 128]`,
    )
    expect(failure([...others, [name, { ...tensor, dtype: 'I32' }]])).toBe(
      `weights.dtype: tensor ${name} is I32, expected F32, F16, BF16`,
    )
  })

  it('rounds to the requested storage type', async () => {
    const half = (await held(bertWeights(model.config, file(model.tensors), 'f16')))['embeddings.LayerNorm.weight']
    expect(half?.dtype).toBe('f16')
    expect(half?.data.byteLength).toBe(2 * 128)
  })
})

describe('assembleBert', () => {
  it('adds the head the model is used with', () => {
    const plan = findPlan('unfused')
    const outputs = (changes: Record<string, unknown>, pooler: boolean) =>
      assembleBert(randomBert(changes, pooler).config, plan, pooler).outputs
    expect(outputs({}, false)).toEqual(['states'])
    expect(outputs({}, true)).toEqual(['states', 'pooled'])
    expect(outputs({ architectures: ['BertForTokenClassification'] }, false)).toEqual(['logits', 'labels'])
  })

  it('refuses an unknown plan and names the known ones', () => {
    expect(() => findPlan('toString')).toThrow(
      expect.objectContaining({ code: 'plan.unknown', hint: expect.stringContaining('unfused') }),
    )
  })
})
