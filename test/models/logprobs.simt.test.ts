/** Log-probabilities of generated tokens on simt: those of the model's own logits, independent of processors, whole and token by token. */
import { expect, it } from 'vitest'
import type { GenerationOptions } from '../../src/models/decoding/generation_options.js'
import { hypothesisTolerance, logitTolerance } from '../../src/verify/tolerance.js'
import { withLlama } from './llama_host.js'
import { referenceModel } from './seq2seq_decoder_reference.js'
import { randomSeq2seq, tinyPegasus, withSeq2seq } from './seq2seq_fixtures.js'
import { openSimtKernels } from './simt.js'

const ways: readonly GenerationOptions[] = [
  {},
  { temperature: 1.8, topP: 0.9, seed: 5 },
  { topK: 6, seed: 2, repetitionPenalty: 1.4, noRepeatNgramSize: 2 },
  { forcedBosTokenId: 11 },
]

/** Ids and log-probabilities of a stream, by case. */
async function joined(
  stream: AsyncIterable<{ readonly index: number; readonly ids: readonly number[]; readonly logprobs?: readonly number[] }>,
) {
  const texts: { ids: number[]; logprobs: number[] }[] = []
  for await (const { index, ids, logprobs = [] } of stream) {
    const text = texts[index] ?? { ids: [], logprobs: [] }
    texts[index] = { ids: [...text.ids, ...ids], logprobs: [...text.logprobs, ...logprobs] }
  }
  return texts
}

const logSoftmax = (logits: readonly number[], id: number): number =>
  (logits[id] ?? Number.NaN) - Math.log(logits.reduce((sum, each) => sum + Math.exp(each), 0))

const searches: readonly GenerationOptions[] = [
  { beams: 3, returned: 3, rule: 'plain' },
  { beams: 3, returned: 3, rule: 'plain', diversityRate: -0.5 },
  { beams: 3, returned: 3, rule: 'hf', lengthPenalty: 0.6 },
  { beams: 2, returned: 2, rule: 'hf', repetitionPenalty: 1.4, minNewTokens: 4 },
]

it('of an encoder-decoder model are those of the written-out model', async () => {
  const sources = [[3, 1, 4, 1, 5], [7]]
  const cases = sources.map((inputIds) => ({ inputIds }))
  // Texts end early, at different steps.
  const json = { ...tinyPegasus, eos_token_id: [1, 20, 24] }
  const { config, file } = randomSeq2seq(json)
  await withSeq2seq(await openSimtKernels(), json, { plan: 'best-decoder' }, async (model) => {
    for (const way of ways) {
      const options = { ...way, maxNewTokens: 11, logprobs: true }
      const results = await model.generate(cases, options)
      for (const [i, source] of sources.entries()) {
        const reference = referenceModel(config, file, source)
        const { ids = [], logprobs = [] } = results[i] ?? {}
        const distances = ids.map((id, at) =>
          Math.abs((logprobs[at] ?? Number.NaN) - logSoftmax(reference(ids.slice(0, at)), id)),
        )
        expect(logprobs).toHaveLength(ids.length)
        expect(Math.max(0, ...distances)).toBeLessThan(hypothesisTolerance.absolute)
      }
      expect(await joined(model.stream(cases, options))).toEqual(results.map(({ ids, logprobs }) => ({ ids, logprobs })))
      const without = await model.generate(cases, { ...way, maxNewTokens: 11 })
      expect(without.map(({ ids }) => ids)).toEqual(results.map(({ ids }) => ids))
      expect(without[0]?.logprobs).toBeUndefined()
    }
  })
})

it('of the beams of an encoder-decoder model are those of the written-out model that is given their tokens', async () => {
  const sources = [[3, 1, 4, 1, 5], [7]]
  const cases = sources.map((inputIds) => ({ inputIds }))
  const json = { ...tinyPegasus, eos_token_id: [1, 20, 24] }
  const { config, file } = randomSeq2seq(json)
  const finishes = new Set<string>()
  await withSeq2seq(await openSimtKernels(), json, { plan: 'best-decoder' }, async (model) => {
    for (const search of searches) {
      const options = { ...search, maxNewTokens: 7, logprobs: true }
      const results = await model.generate(cases, options)
      for (const [i, source] of sources.entries()) {
        const reference = referenceModel(config, file, source)
        for (const { ids, logprobs = [] } of results[i]?.beams ?? []) {
          finishes.add(ids.length < 7 ? 'end' : 'limit')
          const wanted = ids.map((id, at) => logSoftmax(reference(ids.slice(0, at)), id))
          const distances = wanted.map((each, at) => Math.abs((logprobs[at] ?? Number.NaN) - each))
          expect(logprobs).toHaveLength(ids.length)
          expect(Math.max(0, ...distances)).toBeLessThan(hypothesisTolerance.absolute)
          // Log-probabilities of other rows of the same steps differ by more.
          const others = (results[i]?.beams ?? []).filter((beam) => beam.ids[0] !== ids[0])
          for (const other of others)
            expect(Math.abs((other.logprobs?.[0] ?? 0) - (wanted[0] ?? 0))).toBeGreaterThan(hypothesisTolerance.absolute)
        }
        expect(results[i]?.logprobs).toEqual(results[i]?.beams?.[0]?.logprobs)
      }
      expect(await joined(model.stream(cases, options))).toEqual(results.map(({ ids, logprobs }) => ({ ids, logprobs })))
      const without = await model.generate(cases, { ...search, maxNewTokens: 7 })
      expect(without).toEqual(
        results.map(({ logprobs: _, beams, ...result }) => ({
          ...result,
          beams: beams?.map(({ logprobs: __, ...beam }) => beam),
        })),
      )
    }
  })
  expect([...finishes].sort()).toEqual(['end', 'limit'])
})

it('of the beams of a model that continues its prompt are those that a score has', async () => {
  const prompts = [
    [5, 9],
    [7, 301, 44, 12],
  ]
  const cases = prompts.map((inputIds) => ({ inputIds }))
  await withLlama('qwen2', { plan: 'best-llama' }, async (model) => {
    for (const search of searches) {
      const results = await model.generate(cases, { ...search, maxNewTokens: 6, logprobs: true })
      const beams = results.flatMap(({ beams = [] }, i) => beams.map((beam) => ({ ...beam, prompt: prompts[i] ?? [] })))
      const scores = await model.score(beams.map(({ ids, prompt }) => ({ inputIds: [...prompt, ...ids] })))
      for (const [i, { ids, logprobs = [] }] of beams.entries()) {
        const losses = scores[i]?.losses.slice(-ids.length) ?? []
        const distances = losses.map((loss, at) => Math.abs((logprobs[at] ?? Number.NaN) + loss) / (1 + loss))
        expect([losses.length, logprobs.length]).toEqual([ids.length, ids.length])
        expect(Math.max(...distances)).toBeLessThan(logitTolerance.relative)
      }
    }
  })
})

it('of a model that continues its prompt are those that a score has', async () => {
  const prompts = [
    [5, 9],
    [7, 301, 44, 12],
  ]
  const cases = prompts.map((inputIds) => ({ inputIds }))
  await withLlama('qwen2', { plan: 'best-llama' }, async (model) => {
    for (const way of ways) {
      const options = { ...way, maxNewTokens: 10, logprobs: true }
      const results = await model.generate(cases, options)
      const scores = await model.score(prompts.map((prompt, i) => ({ inputIds: [...prompt, ...(results[i]?.ids ?? [])] })))
      for (const [i, { ids, logprobs = [] }] of results.entries()) {
        const losses = scores[i]?.losses.slice(-ids.length) ?? []
        const distances = losses.map((loss, at) => Math.abs((logprobs[at] ?? Number.NaN) + loss) / (1 + loss))
        expect([losses.length, logprobs.length]).toEqual([ids.length, ids.length])
        expect(Math.max(...distances)).toBeLessThan(logitTolerance.relative)
      }
      expect(await joined(model.stream(cases, options))).toEqual(results.map(({ ids, logprobs }) => ({ ids, logprobs })))
    }
    expect((await model.generate(cases, { maxNewTokens: 3 }))[0]).not.toHaveProperty('logprobs')
  })
})
