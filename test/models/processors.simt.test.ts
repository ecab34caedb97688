/**
 * What changes logits before words are chosen, on simt, against the processors of Hugging Face's `generate` written out in double precision
 * over models that are written out too: greedy, draws, and beams by both rules.
 */
import { beforeAll, describe, expect, it } from 'vitest'
import type { LogitOptions } from '../../src/models/decoding/logit_changes.js'
import type { GenerateOptions, GenerationResult } from '../../src/models/seq2seq/seq2seq_pipeline.js'
import { hypothesisTolerance } from '../../src/verify/tolerance.js'
import { hfRule, type Model, plainRule, type Search } from './beam_search.js'
import { withLlama } from './llama_host.js'
import { found } from './llama_searches.js'
import { changedModel, changedScores, greedyIds, type Processed } from './processors.js'
import { referenceModel } from './seq2seq_decoder_reference.js'
import { randomSeq2seq, tinyPegasus, withSeq2seq } from './seq2seq_fixtures.js'
import { openSimtKernels } from './simt.js'

let opened: Awaited<ReturnType<typeof openSimtKernels>>
let models: readonly Model[]
beforeAll(async () => {
  opened = await openSimtKernels()
  const { config, file } = randomSeq2seq(tinyPegasus)
  models = sources.map((source) => referenceModel(config, file, source))
})

const sources = [[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5], [7], [2, 7, 1, 8]]
const cases = sources.map((inputIds) => ({ inputIds }))
const maxNewTokens = 7

const ways: Readonly<Record<string, LogitOptions>> = {
  'a forced begin': { forcedBosTokenId: 11 },
  'a forced end': { forcedEosTokenId: 1 },
  'both, of which the end is one of two': { forcedBosTokenId: 12, forcedEosTokenId: [1, 30] },
}
const asked = (way: LogitOptions): Processed => ({ start: [0], ends: [1], maxNewTokens, ...way })

const search: Search = { rule: 'hf', models: [], vocab: 50, width: 3, steps: maxNewTokens, ends: [1], p: 1, k: 8 }

/** What beams differ in from those of a rule. */
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
  it.each(Object.keys(ways))('%s is as written out, and changes texts', async (name) => {
    const way = ways[name] ?? {}
    await withSeq2seq(opened, tinyPegasus, { plan: 'best-decoder' }, async (model) => {
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
      expect(wrong(await model.generate(cases, { ...beams, rule: 'hf' }), byRule)).toEqual([])
      // Without what is asked for, the rule finds others.
      expect(
        wrong(
          await model.generate(cases, { ...beams, rule: 'hf' }),
          models.map((each) => hfRule(each, search)),
        ),
      ).not.toEqual([])
    })
  })
})

describe('of a model that continues its prompt', () => {
  const prompts = [[5], [5, 9, 3]]
  it('a text begins with the forced token behind a prompt of one token alone, and ends with the other', async () => {
    const way = { forcedBosTokenId: 7, forcedEosTokenId: 2 }
    await withLlama('qwen2', {}, async (model) => {
      const inputs = prompts.map((inputIds) => ({ inputIds }))
      const greedy = await model.generate(inputs, { ...way, maxNewTokens: 6 })
      for (const [i, start] of prompts.entries()) {
        // What is behind one token alone has no score, and nothing to choose.
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
})
