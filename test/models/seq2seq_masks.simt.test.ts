/**
 * Generation from masked sources on simt against the written-out model: holes, padding in front, prefixes and segments, in one batch with a source
 * that has no mask. A decoder attends to the tokens that some token attends.
 */
import { beforeAll, expect, it } from 'vitest'
import type { GenerationResult } from '../../src/models/seq2seq/seq2seq_pipeline.js'
import { hypothesisTolerance } from '../../src/verify/tolerance.js'
import { inTurn } from '../turns.js'
import type { Model } from './beam_search.js'
import { referenceModel } from './seq2seq_decoder_reference.js'
import { randomSeq2seq, smallMarian, tinyMarian, tinyPegasus, withSeq2seq } from './seq2seq_fixtures.js'
import { openSimtKernels } from './simt.js'

let opened: Awaited<ReturnType<typeof openSimtKernels>>
beforeAll(async () => {
  opened = await openSimtKernels()
})

const source = [3, 1, 4, 1, 5, 9, 2, 6, 5]
/** Tokens from `from` attend to each other, and so do those before it; the token at `alone` attends to one before it, and none attends to it. */
const segments = (from: number, alone: number): number[][] =>
  source.map((_, s) => source.map((_, t) => (t === alone ? 0 : s === alone ? (t === 0 ? 1 : 0) : s < from === t < from ? 1 : 0)))
const masks: Readonly<Record<string, readonly number[] | number[][] | undefined>> = {
  holes: [1, 0, 1, 1, 0, 0, 1, 1, 1],
  front: [0, 0, 0, 1, 1, 1, 1, 1, 1],
  prefix: [1, 1, 1, 1, 1, 0, 0, 0, 0],
  segments: segments(4, 6),
  none: undefined,
}
const cases = Object.values(masks).map((attentionMask) => ({ inputIds: source, attentionMask }))

const pairsOf = (mask: (typeof masks)[string]): number[][] | undefined =>
  mask?.map((row) => (typeof row === 'number' ? [...(mask as readonly number[])] : row))

const logSoftmax = (logits: readonly number[], id: number): number =>
  (logits[id] ?? Number.NaN) - Math.log(logits.reduce((sum, each) => sum + Math.exp(each), 0))

/** Largest distance of a text's log-probabilities from those of a model that is given its tokens. */
function distance({ ids, logprobs = [] }: Partial<GenerationResult>, model: Model): number {
  expect(ids).not.toHaveLength(0)
  return Math.max(
    ...(ids ?? []).map((id, at) => Math.abs((logprobs[at] ?? Number.NaN) - logSoftmax(model(ids?.slice(0, at) ?? []), id))),
  )
}

const models: readonly (readonly [string, Readonly<Record<string, unknown>>])[] = [
  ['a pre-LN model', tinyPegasus],
  ['a post-LN model', tinyMarian],
  ['a model with other heads in its decoder', { ...smallMarian, encoder_layers: 1 }],
]
const runs = models.flatMap(([name, json]) => ['unfused', 'ft-v2.1', 'best-decoder'].map((plan) => [name, plan, json] as const))

it.each(inTurn(runs))('%s matches the written-out one under %s', async (_, plan, json) => {
  const { config, file } = randomSeq2seq(json)
  await withSeq2seq(opened, json, { plan }, async (model) => {
    const options = { maxNewTokens: 6, minNewTokens: 6, logprobs: true }
    const results = await model.generate(cases, options)
    const references = Object.values(masks).map((mask) => referenceModel(config, file, source, pairsOf(mask)))
    for (const [i, name] of Object.keys(masks).entries()) {
      const [found, reference] = [results[i] ?? {}, references[i]]
      expect(distance(found, reference ?? (() => [])), name).toBeLessThan(hypothesisTolerance.absolute)
      // The model without the mask is another.
      const other = references.at(-1) ?? (() => [])
      if (name !== 'none') expect(distance(found, other), name).toBeGreaterThan(hypothesisTolerance.separated)
    }
    // Beams read the same memory, and a case in front or alone has the same text.
    const [first] = await model.generate(cases.slice(0, 1), options)
    expect(first?.ids).toEqual(results[0]?.ids)
    const [best] = await model.generate(cases.slice(0, 1), { maxNewTokens: 6, beams: 3, rule: 'plain' })
    const total = best?.ids.reduce((sum, id, at) => sum + logSoftmax(references[0]?.(best.ids.slice(0, at)) ?? [], id), 0)
    const end = best?.finish === 'end' ? logSoftmax(references[0]?.(best.ids) ?? [], 1) : 0
    expect(Math.abs((best?.beams?.[0]?.cumLogProb ?? Number.NaN) - (total ?? 0) - end)).toBeLessThan(hypothesisTolerance.absolute)
  })
})

it('a mask that removes every token, and one of another length, are refused before anything runs', async () => {
  await withSeq2seq(opened, tinyPegasus, {}, async (model) => {
    await expect(model.generate([{ inputIds: [1, 2], attentionMask: [0, 0] }])).rejects.toMatchObject({
      code: 'run.mask',
      message: 'case 0: its mask removes every token',
    })
    await expect(model.generate([{ inputIds: [1, 2], attentionMask: [1] }])).rejects.toMatchObject({
      code: 'run.mask',
      message: 'case 0 has 2 tokens and a mask of 1',
    })
  })
})
