/**
 * Generation by small random models on simt against models, rules and choices that are written out: beams of any width over any
 * vocabulary, limits, the repetition penalty, draws, and texts longer and shorter than their sources.
 */
import { beforeAll, describe, expect, it } from 'vitest'
import type { GenerationResult } from '../../src/models/seq2seq/seq2seq_pipeline.js'
import { hypothesisTolerance } from '../../src/verify/tolerance.js'
import { inTurn } from '../turns.js'
import { hfRule, type Model, plainRule, type Search } from './beam_search.js'
import { referenceModel } from './seq2seq_decoder_reference.js'
import { randomSeq2seq, tinyMarian, tinyPegasus, widePegasus, withSeq2seq } from './seq2seq_fixtures.js'
import { openSimtKernels } from './simt.js'

let opened: Awaited<ReturnType<typeof openSimtKernels>>
beforeAll(async () => {
  opened = await openSimtKernels()
})

type Json = Readonly<Record<string, unknown>>

const sources = [[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5], [7], [2, 7, 1, 8]]
const cases = sources.map((inputIds) => ({ inputIds }))

const references = (json: Json): Model[] => {
  const { config, file } = randomSeq2seq(json)
  return sources.map((source) => referenceModel(config, file, source))
}

type Found = readonly Pick<GenerationResult, 'beams'>[]

/** Faults of beams, compared with a rule over the reference. */
function wrong(
  found: Found,
  wanted: readonly (readonly { readonly ids: readonly number[]; readonly cumLogProb: number }[])[],
): string[] {
  return wanted.flatMap((list, i) =>
    list.flatMap(({ ids, cumLogProb }, j) => {
      const beam = found[i]?.beams?.[j]
      const same = JSON.stringify(beam?.ids) === JSON.stringify(ids)
      const close = Math.abs((beam?.cumLogProb ?? Number.NaN) - cumLogProb) <= hypothesisTolerance.absolute
      return same && close ? [] : [`case ${i}, beam ${j}: ${beam?.ids} ${beam?.cumLogProb}, expected ${ids} ${cumLogProb}`]
    }),
  )
}

const searchOf = (width: number, steps: number, vocab: number): Search => ({
  rule: 'plain',
  models: [],
  vocab,
  width,
  steps,
  ends: [1],
  p: 1,
  k: 1,
})

/** Greedy ids, before an end, with logits changed by the requested processors. */
function greedyIds(
  model: Model,
  { most, least = 0, penalty = 1, start = 0 }: { most: number; least?: number; penalty?: number; start?: number },
) {
  const ids: number[] = []
  while (ids.length < most) {
    const seen = new Set([start, ...ids])
    const logits = model(ids).map((logit, id) => {
      if (id === 1 && ids.length < least) return Number.NEGATIVE_INFINITY
      if (!seen.has(id)) return logit
      return logit > 0 ? logit / penalty : logit * penalty
    })
    const next = logits.indexOf(Math.max(...logits))
    if (next === 1) break
    ids.push(next)
  }
  return ids
}

describe('beams', () => {
  const widths = [
    [17, 3],
    [17, 7],
    [45, 5],
    [1000, 3],
    [1000, 7],
  ] as const
  it.each(inTurn(widths))(
    'over %i words, %i wide, match the written-out rule, and stop exactly at the limit',
    async (vocab, width) => {
      const json = { ...tinyPegasus, vocab_size: vocab }
      const models = references(json)
      for (const plan of ['unfused', 'best-decoder']) {
        await withSeq2seq(opened, json, { plan }, async (model) => {
          const found = await model.generate(cases, { beams: width, returned: width, maxNewTokens: 6 })
          const wanted = models.map((each) => plainRule(each, searchOf(width, 6, vocab)))
          expect(wrong(found, wanted), plan).toEqual([])
          expect(Math.max(...wanted.flat().map(({ ids }) => ids.length))).toBe(6)
          // Two beams that change places are found.
          const swapped = found.map(({ beams = [] }) => ({
            beams: [...beams.slice(1, 2), ...beams.slice(0, 1), ...beams.slice(2)],
          }))
          expect(wrong(swapped, wanted).length).toBeGreaterThan(0)
        })
      }
    },
  )

  it('with a diversity rate match the written-out rule, and are unchanged without one', async () => {
    const models = references(tinyPegasus)
    await withSeq2seq(opened, tinyPegasus, { plan: 'best-decoder' }, async (model) => {
      const options = { beams: 3, returned: 3, maxNewTokens: 5 }
      const found = await model.generate(cases, { ...options, diversityRate: -0.7 })
      const wanted = (diversityRate: number) => models.map((each) => plainRule(each, { ...searchOf(3, 5, 50), diversityRate }))
      expect(wrong(found, wanted(-0.7))).toEqual([])
      expect(wrong(found, wanted(0)).length).toBeGreaterThan(0)
      expect(await model.generate(cases, { ...options, diversityRate: 0 })).toEqual(await model.generate(cases, options))
    })
  })

  it('by the rule of generate match the written-out form', async () => {
    const models = references(tinyPegasus)
    await withSeq2seq(opened, tinyPegasus, { plan: 'ft-v2.1' }, async (model) => {
      for (const [earlyStopping, code, lengthPenalty] of [
        [false, 0, 1],
        [true, 1, 0.5],
        ['never', 2, 2],
      ] as const) {
        const options = { beams: 4, returned: 4, rule: 'hf', earlyStopping, lengthPenalty, maxNewTokens: 9 } as const
        const found = await model.generate(cases, options)
        const search = { ...searchOf(4, 9, 50), earlyStopping: code, lengthPenalty }
        expect(
          wrong(
            found,
            models.map((each) => hfRule(each, search)),
          ),
          `early stopping ${earlyStopping}`,
        ).toEqual([])
      }
    })
  })

  it('of one are greedy', async () => {
    await withSeq2seq(opened, tinyPegasus, {}, async (model) => {
      const greedy = (await model.generate(cases, { maxNewTokens: 12 })).map(({ ids }) => ids)
      const one = await model.generate(cases, { beams: 1, rule: 'plain', maxNewTokens: 12 })
      expect(one.map(({ ids }) => ids)).toEqual(greedy)
      expect(one[0]?.beams).toHaveLength(1)
    })
  })
})

describe('a memory that is wider than the decoder', () => {
  it.each(['unfused', 'ft-v2.1', 'best-decoder'])('is attended to under %s, by heads of the decoder', async (plan) => {
    for (const json of [widePegasus, { ...widePegasus, tie_word_embeddings: false, cross_attention_hidden_size: 24 }]) {
      const { file } = randomSeq2seq(json)
      const models = references(json)
      await withSeq2seq(opened, json, { plan }, async (model) => {
        const found = await model.generate(cases, { beams: 2, returned: 2, maxNewTokens: 6 })
        const wanted = models.map((each) => plainRule(each, searchOf(2, 6, 50)))
        expect(wrong(found, wanted)).toEqual([])
      })
      // Embeddings of the encoder are its own.
      expect(file.tensors.get('model.encoder.embed_tokens.weight')?.shape).toEqual([50, json.cross_attention_hidden_size])
      expect(file.tensors.get('model.decoder.embed_tokens.weight')?.shape).toEqual([50, 32])
    }
  })
})

describe('greedy texts', () => {
  it.each(['unfused', 'best-decoder'])('are those of a written-out model under %s, post-LN too', async (plan) => {
    for (const json of [tinyPegasus, tinyMarian]) {
      const start = json === tinyMarian ? 49 : 0
      const models = references(json)
      await withSeq2seq(opened, json, { plan }, async (model) => {
        for (const most of [3, 8, 13]) {
          const found = await model.generate(cases, { maxNewTokens: most })
          const wanted = models.map((each) => greedyIds(each, { most, start }))
          expect(found.map(({ ids }) => ids)).toEqual(wanted)
          // The texts of other sources differ.
          expect(found.map(({ ids }) => ids)).not.toEqual([...wanted.slice(1), ...wanted.slice(0, 1)])
        }
      })
    }
  })

  it('avoid repetition under a penalty, and have no end before the minimum', async () => {
    const models = references(tinyPegasus)
    await withSeq2seq(opened, tinyPegasus, {}, async (model) => {
      const plain = (await model.generate(cases, { maxNewTokens: 10 })).map(({ ids }) => ids)
      const ids = async (options: { repetitionPenalty?: number; minNewTokens?: number }) =>
        (await model.generate(cases, { maxNewTokens: 10, ...options })).map((result) => result.ids)
      const penalised = await ids({ repetitionPenalty: 1.7 })
      expect(penalised).toEqual(models.map((each) => greedyIds(each, { most: 10, penalty: 1.7 })))
      expect(penalised).not.toEqual(plain)
    })
  })

  it('of a model that would end at once have the minimum number of tokens', async () => {
    await withSeq2seq(opened, { ...tinyPegasus, eos_token_id: Array.from({ length: 25 }, (_, i) => i) }, {}, async (model) => {
      const lengths = async (minNewTokens: number) =>
        (await model.generate(cases, { maxNewTokens: 10, minNewTokens })).map(({ ids }) => ids.length)
      expect(Math.min(...(await lengths(0)))).toBeLessThan(5)
      expect(Math.min(...(await lengths(5)))).toBeGreaterThanOrEqual(5)
      expect(await lengths(10)).toEqual([10, 10, 10])
    })
  })
})

describe('draws', () => {
  const options = { temperature: 1.5, topP: 0.95, maxNewTokens: 10, seed: 11 }

  it('follow the seed, whatever the batch and the place in it, and change with it', async () => {
    await withSeq2seq(opened, tinyPegasus, {}, async (model) => {
      const one = { inputIds: [3, 1, 4, 1, 5] }
      const ids = async (count: number, batch: number, seed: number | readonly number[] = 11) =>
        (
          await model.generate(
            Array.from({ length: count }, () => one),
            { ...options, seed, batch },
          )
        ).map((result) => result.ids)
      const [alone = []] = await ids(1, 1)
      expect(alone.length).toBeGreaterThan(0)
      expect(await ids(7, 7)).toEqual(Array.from({ length: 7 }, () => alone))
      expect(await ids(64, 64)).toEqual(Array.from({ length: 64 }, () => alone))
      expect(await ids(3, 2)).toEqual([alone, alone, alone])
      const [other] = await ids(1, 1, 12)
      expect(other).not.toEqual(alone)
      expect(await ids(3, 2, [12, 11, 12])).toEqual([other, alone, other])
      expect((await ids(1, 1, 2 ** 32 + 11))[0]).not.toEqual(alone)
    })
  })

  it('from only the likeliest word are greedy', async () => {
    await withSeq2seq(opened, tinyPegasus, { plan: 'best-decoder' }, async (model) => {
      const greedy = await model.generate(cases, { maxNewTokens: 10 })
      expect(await model.generate(cases, { topK: 1, temperature: 3, maxNewTokens: 10 })).toEqual(greedy)
      expect(await model.generate(cases, { topP: 1e-6, maxNewTokens: 10 })).toEqual(greedy)
      expect(await model.generate(cases, { ...options, seed: 3 })).not.toEqual(greedy)
    })
  })
})

describe('a device that records steps', () => {
  it('runs them first on words there are', async () => {
    const { device } = opened
    const recording = { ...opened, device: { ...device, info: () => ({ ...device.info(), kind: 'cuda' as const }) } }
    const ways = [
      {},
      { beams: 3, rule: 'plain' },
      { beams: 2, rule: 'hf' },
      { topP: 0.9, seed: 5 },
      { topK: 4, seed: 5 },
    ] as const
    for (const plan of ['unfused', 'best-decoder']) {
      await withSeq2seq(opened, tinyPegasus, { plan }, async (model) => {
        await withSeq2seq(recording, tinyPegasus, { plan }, async (other) => {
          for (const way of ways) {
            const options = { maxNewTokens: 12, ...way }
            expect(await other.generate(cases, options)).toEqual(await model.generate(cases, options))
          }
        })
      })
    }
  })
})

describe('long texts', () => {
  it('of 1,500 tokens, to the last position, continue as they began', async () => {
    const json = { ...tinyPegasus, max_position_embeddings: 1500, eos_token_id: [] }
    await withSeq2seq(opened, json, { plan: 'ft-v2.1' }, async (model) => {
      const [long] = await model.generate([{ inputIds: [5, 6] }], { maxNewTokens: 1500 })
      expect(long?.ids).toHaveLength(1500)
      const [short] = await model.generate([{ inputIds: [5, 6] }], { maxNewTokens: 9 })
      expect(long?.ids.slice(0, 9)).toEqual(short?.ids)
    })
  })

  it('and short ones of long sources are those of a written-out model', async () => {
    const source = Array.from({ length: 40 }, (_, i) => 2 + ((7 * i) % 45))
    const { config, file } = randomSeq2seq(tinyPegasus)
    const most = 5
    await withSeq2seq(opened, tinyPegasus, { plan: 'best-decoder' }, async (model) => {
      const [found] = await model.generate([{ inputIds: source }], { maxNewTokens: most })
      expect(found?.ids).toEqual(greedyIds(referenceModel(config, file, source), { most }))
    })
  })
})
