/**
 * Encoders under masks on the CPU device against BERT written out in double precision: a hundred random masks a shape, rows without a key
 * among them, under every plan of floats; and the example model under padding on either side and holes, from its own goldens.
 */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { readSafetensors } from '../../src/checkpoint/safetensors.js'
import type { EncoderResult } from '../../src/models/encoder/encoder_pipeline.js'
import type { TokenCase } from '../../src/models/parts/token_cases.js'
import { compare } from '../../src/verify/compare.js'
import { modelTolerance } from '../../src/verify/tolerance.js'
import { inTurn } from '../turns.js'
import { classifiedBy, encodedBy, type PairMask } from './bert_reference.js'
import { exampleModel, golden, goldenSentences, noise, randomBert, writeModel } from './fixtures.js'
import { simtEncoders } from './simt.js'

let load: Awaited<ReturnType<typeof simtEncoders>>
beforeAll(async () => {
  load = await simtEncoders()
})

const plans = ['unfused', 'ft-v1', 'ft-v2.1', 'best-encoder', 'best-encoder-library', 'auto']

const rowsOf = (results: readonly EncoderResult[]): number[] =>
  results.flatMap((result) =>
    (result.kind === 'encoder' ? result.states : result.kind === 'token-classifier' ? result.logits : []).flatMap((row) => [
      ...row,
    ]),
  )

const next = noise(11)
const draw = (below: number): number => Math.floor(((next() + 1) / 2) * below)

/** A mask of pairs that keeps half of the keys on average, with an occasional empty row. */
const randomPairs = (length: number): number[][] =>
  Array.from({ length }, () => {
    const keeps = draw(6)
    return Array.from({ length }, () => (draw(5) < keeps ? 1 : 0))
  })

/** The rows of a mask of keys. */
const pairsOf = (mask: NonNullable<TokenCase['attentionMask']>): PairMask =>
  mask.map((row) => (typeof row === 'number' ? (mask as readonly number[]) : row))

/** Masks of keys, one in four, and of pairs, over sequences of up to `most` tokens. */
const randomCases = (
  most: number,
): readonly (TokenCase & { readonly attentionMask: NonNullable<TokenCase['attentionMask']> })[] =>
  Array.from({ length: 100 }, (_, i) => {
    const length = i === 0 ? most : 1 + draw(most)
    const keys = Array.from({ length }, () => draw(2))
    // There are no results after the last kept token.
    if (keys.includes(1)) keys[length - 1] = 1
    return { inputIds: Array.from({ length }, () => draw(50)), attentionMask: i % 4 === 3 ? keys : randomPairs(length) }
  })

const shapes = [
  { most: 9, model: { hidden_size: 64, num_attention_heads: 2, intermediate_size: 48, num_hidden_layers: 2 } },
  { most: 33, model: { hidden_size: 24, num_attention_heads: 2, intermediate_size: 16, max_position_embeddings: 40 } },
]

describe.each(shapes)('a hundred random masks of up to $most tokens', ({ most, model: changes }) => {
  const model = randomBert(changes)
  const cases = randomCases(most)
  const { layers, heads, eps } = model.config
  const wanted = cases.flatMap(({ inputIds, attentionMask }) =>
    encodedBy({ layers, heads, eps }, model.tensors, inputIds, pairsOf(attentionMask)).flat(),
  )
  const bound = { absolute: modelTolerance('f32', layers).absolute, relative: 0 }

  it('has rows without a key among them', () => {
    const empty = cases.flatMap(({ attentionMask }) => pairsOf(attentionMask).filter((row) => !row.includes(1)))
    expect(empty.length).toBeGreaterThan(10)
  })

  it.each(plans)('under %s', async (plan) => {
    const dir = await writeModel(model)
    try {
      const encoder = await load(dir, { plan })
      const found = compare(rowsOf(await encoder.run(cases, { batch: 50 })), wanted, bound)
      expect(found.passed, found.summary).toBe(true)
      const [first] = cases
      const flipped = pairsOf(first?.attentionMask ?? []).map((row, s) =>
        row.map((kept, t) => (s === 2 && t === 1 ? 1 - kept : kept)),
      )
      const twin = rowsOf(await encoder.run([{ inputIds: first?.inputIds ?? [], attentionMask: flipped }]))
      expect(compare(twin, wanted.slice(0, twin.length), bound).passed).toBe(false)
      encoder.release()
    } finally {
      await rm(dir, { recursive: true })
    }
  })
})

describe("FasterTransformer's arithmetic", () => {
  const model = randomBert({ num_hidden_layers: 2 })
  const { layers, heads, eps } = model.config
  const cases = [...randomCases(9).slice(0, 40), { inputIds: [4, 8, 15] }]
  const wantedBy = (maskValue: number, softmaxEps: number): number[] =>
    cases.flatMap((item) => {
      const ids = item.inputIds
      const pairs = 'attentionMask' in item ? pairsOf(item.attentionMask) : ids.map(() => ids.map(() => 1))
      const masking = { masked: (score: number) => Math.fround(score + maskValue), eps: softmaxEps }
      return encodedBy({ layers, heads, eps }, model.tensors, ids, pairs, masking).flat()
    })
  const bound = { absolute: modelTolerance('f32', layers).absolute, relative: 0 }

  it.each(inTurn(['unfused', 'ft-v1', 'ft-v2.1']))('of a whole model under %s', async (plan) => {
    const dir = await writeModel(model)
    try {
      for (const masking of [
        { maskValue: -10_000, softmaxEps: 1e-6 },
        { maskValue: -2.5, softmaxEps: 0.25 },
      ]) {
        const encoder = await load(dir, { plan, masking })
        const found = rowsOf(await encoder.run(cases, { batch: 50 }))
        const verdict = compare(found, wantedBy(masking.maskValue, masking.softmaxEps), bound)
        expect(verdict.passed, verdict.summary).toBe(true)
        // Other numbers give other states.
        expect(compare(found, wantedBy(masking.maskValue, 0.5), bound).passed).toBe(false)
        expect(compare(found, wantedBy(-4, masking.softmaxEps), bound).passed).toBe(false)
        encoder.release()
      }
    } finally {
      await rm(dir, { recursive: true })
    }
  })

  it('is refused for numbers out of range, for other norms and under other plans', async () => {
    const dir = await writeModel(model)
    try {
      await expect(load(dir, { masking: { maskValue: 1 } })).rejects.toMatchObject({
        code: 'run.masking',
        message: 'maskValue is 1, expected a number below 0 and at least -65504',
      })
      await expect(load(dir, { masking: { softmaxEps: -1 } })).rejects.toMatchObject({ code: 'run.masking' })
      await expect(load(dir, { masking: {}, plan: 'best-encoder' })).rejects.toMatchObject({ code: 'plan.model' })
    } finally {
      await rm(dir, { recursive: true })
    }
  })
})

describe('16-bit storage', () => {
  it.each(inTurn(['f16', 'bf16'] as const))('%s masks alike', async (dtype) => {
    const model = randomBert({})
    const { layers, heads, eps } = model.config
    const cases = randomCases(17)
    const wanted = cases.flatMap(({ inputIds, attentionMask }) =>
      encodedBy({ layers, heads, eps }, model.tensors, inputIds, pairsOf(attentionMask)).flat(),
    )
    const dir = await writeModel(model)
    try {
      for (const plan of ['unfused', 'best-encoder']) {
        const encoder = await load(dir, { plan, dtype })
        const bound = { absolute: modelTolerance(dtype, layers).absolute, relative: 0 }
        const found = compare(rowsOf(await encoder.run(cases, { batch: 50 })), wanted, bound)
        expect(found.passed, `${plan}: ${found.summary}`).toBe(true)
        encoder.release()
      }
    } finally {
      await rm(dir, { recursive: true })
    }
  })
})

describe('the example model', () => {
  const bound = { absolute: modelTolerance('f32', 4).absolute, relative: 0 }

  /** Sentences with padding before and after them, one of two with a hole. */
  const padded = async () =>
    (await goldenSentences()).slice(0, 6).map((sentence, i) => {
      const [front, behind] = [1 + (i % 3), i % 4]
      const hole = i % 2 === 1 ? 3 : -1
      return {
        inputIds: [...Array(front).fill(0), ...sentence, ...Array(behind).fill(0)],
        attentionMask: [...Array(front).fill(0), ...sentence.map((_, s) => (s === hole ? 0 : 1)), ...Array(behind).fill(0)],
      }
    })

  it('matches its goldens for the original rows, padding and mask', async () => {
    const tensor = await golden()
    const [ids, mask, logits] = [tensor('input_ids'), tensor('attention_mask'), tensor('logits')]
    const [rows = 0, seq = 0] = ids.shape
    const rowOf = (data: ArrayLike<number>, b: number): number[] => Array.from(data).slice(b * seq, (b + 1) * seq)
    const cases = Array.from({ length: rows }, (_, b) => ({ inputIds: rowOf(ids.data, b), attentionMask: rowOf(mask.data, b) }))
    const encoder = await load(exampleModel, { plan: 'best-encoder' })
    const found = rowsOf(await encoder.run(cases))
    const classes = logits.shape[2] ?? 0
    const wanted = Array.from(logits.data).filter((_, at) => mask.data[Math.floor(at / classes)] === 1)
    const result = compare(found, wanted, bound)
    expect(result.passed, result.summary).toBe(true)
    encoder.release()
  })

  it('under padding on both sides and holes, as written out', async () => {
    const { tensors } = await readSafetensors(join(exampleModel, 'model.safetensors'))
    const cases = await padded()
    const wanted = cases.flatMap(({ inputIds, attentionMask }) => {
      const kept = attentionMask.lastIndexOf(1) + 1
      const states = encodedBy({ layers: 4, heads: 2, eps: 1e-12 }, tensors, inputIds, pairsOf(attentionMask))
      return classifiedBy(tensors, states.slice(0, kept)).flat()
    })
    for (const plan of inTurn(plans)) {
      const encoder = await load(exampleModel, { plan })
      const result = compare(rowsOf(await encoder.run(cases)), wanted, bound)
      expect(result.passed, `${plan}: ${result.summary}`).toBe(true)
      encoder.release()
    }
  })

  it('has the same launches under a mask as with lengths', async () => {
    const encoder = await load(exampleModel, { plan: 'ft-v2.1' })
    const [first = []] = await goldenSentences()
    await encoder.run([{ inputIds: first, attentionMask: first.map((_, s) => (s === 1 ? 0 : 1)) }])
    const shape = { batch: 1, seq: 16 }
    const [lengths, pairs] = [await encoder.program(shape), await encoder.program(shape, { masked: true })]
    expect(pairs.steps.map(({ label }) => label)).toEqual(lengths.steps.map(({ label }) => label))
    expect(pairs.steps.map(({ kernel }) => kernel?.replace('_pairs', ''))).toEqual(lengths.steps.map(({ kernel }) => kernel))
    encoder.release()
  })
})
