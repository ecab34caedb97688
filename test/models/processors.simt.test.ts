/**
 * Logits processors on simt, compared with those of Hugging Face's `generate` written out in double precision, over models that are written out
 * too: greedy, sampling, and beams by both rules.
 */
import { beforeAll, describe, expect, it } from 'vitest'
import type { LogitOptions } from '../../src/models/decoding/logit_changes.js'
import type { Llama } from '../../src/models/llama/llama_types.js'
import type { GenerateOptions, GenerationResult } from '../../src/models/seq2seq/seq2seq_pipeline.js'
import { hypothesisTolerance } from '../../src/verify/tolerance.js'
import { hfRule, type Model, plainRule, type Search } from './beam_search.js'
import { withFields, withLlama } from './llama_host.js'
import { found } from './llama_searches.js'
import { changedModel, changedScores, greedyIds, type Processed } from './processors.js'
import { referenceModel } from './seq2seq_decoder_reference.js'
import { randomSeq2seq, tinyPegasus, withSeq2seq } from './seq2seq_fixtures.js'
import { openSimtKernels } from './simt.js'

let opened: Awaited<ReturnType<typeof openSimtKernels>>
let models: readonly Model[]
beforeAll(async () => {
  opened = await openSimtKernels()
  const { config, file } = randomSeq2seq(json)
  models = sources.map((source) => referenceModel(config, file, source))
})

const json = { ...tinyPegasus, eos_token_id: [1, 4] }
const sources = [[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5], [7], [2, 7, 1, 8]]
const cases = sources.map((inputIds) => ({ inputIds }))
const maxNewTokens = 7

/** End ids, of which most texts reach the second early. */
const ends = [1, 4]

const ways: Readonly<Record<string, LogitOptions>> = {
  'a repetition penalty': { repetitionPenalty: 1.7 },
  'one below 1': { repetitionPenalty: 0.6 },
  'no word twice': { noRepeatNgramSize: 1 },
  'no two words twice': { noRepeatNgramSize: 2 },
  'a least number of tokens': { minNewTokens: 6 },
  'a forced begin': { forcedBosTokenId: 11 },
  'a forced end': { forcedEosTokenId: 1 },
  'both, of which the end is one of two': { forcedBosTokenId: 12, forcedEosTokenId: [1, 30] },
  'all of it': {
    ...{ repetitionPenalty: 1.3, noRepeatNgramSize: 2, minNewTokens: 4 },
    ...{ forcedBosTokenId: 20, forcedEosTokenId: 1 },
  },
}
const asked = (way: LogitOptions): Processed => ({ start: [0], ends, maxNewTokens, ...way })

const search: Search = { rule: 'hf', models: [], vocab: 50, width: 3, steps: maxNewTokens, ends, p: 1, k: 16, lengthPenalty: 0 }

/** Differences between a pipeline's beams and those of a reference rule. */
const wrong = (results: readonly Pick<GenerationResult, 'beams'>[], wanted: readonly ReturnType<typeof hfRule>[]): string[] =>
  wanted.flatMap((list, i) =>
    list.flatMap(({ ids, cumLogProb }, j) => {
      const beam = results[i]?.beams?.[j]
      const close = Math.abs((beam?.cumLogProb ?? Number.NaN) - cumLogProb) <= hypothesisTolerance.absolute
      return close && `${beam?.ids}` === `${ids}`
        ? []
        : [`${i}.${j}: ${beam?.ids} ${beam?.cumLogProb}, expected ${ids} ${cumLogProb}`]
    }),
  )

describe('of an encoder-decoder model', () => {
  it.each(Object.keys(ways))('%s matches the written-out form, and changes texts', async (name) => {
    const way = ways[name] ?? {}
    await withSeq2seq(opened, json, { plan: 'best-decoder' }, async (model) => {
      const ids = async (options: GenerateOptions) =>
        (await model.generate(cases, { maxNewTokens, ...options })).map((result) => result.ids)
      const greedy = await ids(way)
      expect(greedy).toEqual(models.map((each) => greedyIds(each, asked(way))))
      expect(greedy).not.toEqual(await ids({}))
      expect(await ids({ ...way, topK: 1, temperature: 3 })).toEqual(greedy)
      const beams = { ...way, maxNewTokens, beams: 3, returned: 3 }
      const plain = models.map((each) => plainRule(changedModel(each, asked(way)), search))
      expect(wrong(await model.generate(cases, beams), plain)).toEqual([])
      const changed: Search = { ...search, changed: (scores, ids) => changedScores(scores, ids, asked(way)) }
      const byRule = models.map((each) => hfRule(each, changed))
      expect(wrong(await model.generate(cases, { ...beams, lengthPenalty: 0 }), byRule)).toEqual([])
      // Without the processors, the rule finds others.
      expect(
        wrong(
          await model.generate(cases, { ...beams, lengthPenalty: 0 }),
          models.map((each) => hfRule(each, search)),
        ),
      ).not.toEqual([])
    })
  })

  it('suppressed words do not change scores of others by the rule of generate, nor reported ones', async () => {
    const banned = [...new Set(models.flatMap((each) => greedyIds(each, asked({})).slice(0, 2)))].filter(
      (id) => !ends.includes(id),
    )
    expect(banned.length).toBeGreaterThan(1)
    const way: Processed = { ...asked({}), banned }
    await withSeq2seq(opened, { ...json, bad_words_ids: banned.map((id) => [id]) }, { plan: 'best-decoder' }, async (model) => {
      const greedy = await model.generate(cases, { maxNewTokens, logprobs: true })
      expect(greedy.map(({ ids }) => ids)).toEqual(models.map((each) => greedyIds(each, way)))
      for (const [i, { ids, logprobs = [] }] of greedy.entries()) {
        for (const [at, id] of ids.entries()) {
          const logits = models[i]?.(ids.slice(0, at)) ?? []
          const wanted = (logits[id] ?? 0) - Math.log(logits.reduce((sum, each) => sum + Math.exp(each), 0))
          expect(Math.abs((logprobs[at] ?? Number.NaN) - wanted)).toBeLessThan(hypothesisTolerance.absolute)
        }
      }
      const beams = { maxNewTokens, beams: 3, returned: 3 }
      const changed: Search = { ...search, changed: (scores, ids) => changedScores(scores, ids, way) }
      const byRule = models.map((each) => hfRule(each, changed))
      expect(wrong(await model.generate(cases, { ...beams, lengthPenalty: 0 }), byRule)).toEqual([])
      const plain = models.map((each) => plainRule(changedModel(each, way), search))
      expect(wrong(await model.generate(cases, beams), plain)).toEqual([])
      // Scores that are normalised again are others.
      expect(
        wrong(
          await model.generate(cases, { ...beams, lengthPenalty: 0 }),
          models.map((each) => hfRule(changedModel(each, way), search)),
        ),
      ).not.toEqual([])
    })
  })
})

describe('of a model that continues its prompt', () => {
  const prompts = [[5], [5, 9, 3]]
  it('a text starts with the forced token after a prompt of one token, and ends with the other', async () => {
    const way = { forcedBosTokenId: 7, forcedEosTokenId: 2 }
    await withLlama('qwen2', {}, async (model) => {
      const inputs = prompts.map((inputIds) => ({ inputIds }))
      const greedy = await model.generate(inputs, { ...way, maxNewTokens: 6 })
      for (const [i, start] of prompts.entries()) {
        // The token after a prompt of one token is forced: it has no score and no alternative.
        const behind =
          (logits: Model): Model =>
          (ids) =>
            start.length + ids.length > 1 ? logits(ids) : [...logits([...ids, 0])]
        const wanted = await found(model, start, (logits) =>
          greedyIds(behind(logits), { start, ends: [2], maxNewTokens: 6, ...way }),
        )
        expect(greedy[i]).toMatchObject({ ids: wanted, finish: 'end' })
      }
      expect(greedy.map(({ ids }) => [ids[0], ids.length])).toEqual([
        [7, 5],
        [expect.any(Number), 5],
      ])
      const beams = await model.generate(inputs, { ...way, maxNewTokens: 6, beams: 2, returned: 2, rule: 'hf' })
      expect(beams.map(({ finish }) => finish)).toEqual(['end', 'end'])
      expect(beams[0]?.beams?.map(({ ids }) => ids[0])).toEqual([7, 7])
    })
  })
  it('words of the prompt count, and suppressed words are left out of beams too', async () => {
    const way = { repetitionPenalty: 1.4, noRepeatNgramSize: 2, minNewTokens: 2 }
    const start = [5, 5]
    const inputs = [[7], start].map((inputIds) => ({ inputIds }))
    const ids = async (model: Llama, options: LogitOptions) =>
      (await model.generate(inputs, { maxNewTokens: 4, ...options }))[1]?.ids ?? []
    const free = await withLlama('qwen2', {}, async (model) => [await ids(model, {}), await ids(model, way)])
    expect(free[0]).not.toEqual(free[1])
    // Bans the first tokens that it would generate.
    const banned = free[1]?.slice(0, 2) ?? []
    const asked = { start, ends: [2], banned, maxNewTokens: 4, ...way }
    await withLlama('qwen2', { dir: await withFields('qwen2', { suppress_tokens: banned }) }, async (model) => {
      const greedy = await ids(model, way)
      expect(greedy).toEqual(await found(model, start, (logits) => greedyIds(logits, asked)))
      expect(greedy).not.toEqual(free[1])
      const changed = (scores: readonly number[], ids: readonly number[]) => changedScores(scores, ids, asked)
      const of: Search = { ...search, vocab: 512, width: 2, steps: 4, ends: [2], changed }
      const beams = await model.generate(inputs, { ...way, maxNewTokens: 4, beams: 2, returned: 2, lengthPenalty: 0 })
      const wanted = await found(model, start, (logits) => hfRule(logits, of))
      expect(beams[1]?.beams?.map(({ ids }) => ids)).toEqual(wanted.map(({ ids }) => ids))
    })
  })
})
