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
