/**
 * Beams of LLaMA-like models on simt, compared with both rules written out over lists of hypotheses. The rules use logits of whole texts read at
 * once, so every beam's past is checked: the shared prompt and the choices of its parents.
 */
import { describe, expect, it } from 'vitest'
import { countFor } from '../../src/ir/top_k.js'
import type { Llama } from '../../src/models/llama/llama_types.js'
import { logitTolerance } from '../../src/verify/tolerance.js'
import { hfRule, type Model, plainRule, type Search } from './beam_search.js'
import { type FamilyName, goldenOf, withEnds, withLlama } from './llama_host.js'
import { found } from './llama_searches.js'

/** Prompts of several lengths, of which one is longer than the window. */
const promptsOf = (name: FamilyName): readonly (readonly number[])[] => {
  const ids = goldenOf(name).text.input_ids
  return [ids.slice(0, 2), ids.slice(5, 62), ids.slice(70, 79)]
}

const steps = 10
const width = 3

/** An end id that texts of the model reach, in addition to its own. */
async function endsOf(name: FamilyName): Promise<readonly number[]> {
  const prompts = promptsOf(name).map((inputIds) => ({ inputIds }))
  const texts = await withLlama(name, {}, (model) => model.generate(prompts, { maxNewTokens: 6 }))
  return [2, ...texts.slice(0, 2).flatMap(({ ids }) => ids.slice(3, 4))]
}

describe('beams match the rules over logits of whole texts', () => {
  const plans: readonly (readonly [FamilyName, string])[] = [
    ['mistral', 'best-llama'],
    ['qwen3', 'unfused'],
  ]
  it.each(plans)('of %s under %s', async (name, plan) => {
    const ends = await endsOf(name)
    const prompts = promptsOf(name)
    await withLlama(name, { plan, dir: await withEnds(name, ends) }, async (model) => {
      const inputs = prompts.map((inputIds) => ({ inputIds }))
      const search: Search = {
        rule: 'plain',
        models: [],
        vocab: model.config.vocab,
        width,
        steps,
        ends,
        p: 1,
        k: countFor(width),
      }
      const compareWithRule = async (
        options: Parameters<Llama['generate']>[1],
        rule: (logits: Model) => ReturnType<typeof plainRule>,
      ) => {
        const results = await model.generate(inputs, { beams: width, returned: width, maxNewTokens: steps, ...options })
        for (const [i, prompt] of prompts.entries()) {
          const wanted = await found(model, prompt, rule)
          expect(results[i]?.beams?.map(({ ids }) => ids)).toEqual(wanted.map(({ ids }) => ids))
          for (const [at, { score }] of wanted.entries()) {
            const distance = Math.abs((results[i]?.beams?.[at]?.score ?? Number.NaN) - score)
            expect(distance).toBeLessThan(steps * logitTolerance.relative)
          }
          const best = wanted[0]?.ids ?? []
          expect(results[i]).toMatchObject({ ids: best, finish: best.length < steps ? 'end' : 'limit' })
        }
        return results
      }
      const plain = await compareWithRule({}, (logits) => plainRule(logits, search))
      const short = await compareWithRule({ lengthPenalty: 0.4, earlyStopping: true }, (logits) =>
        hfRule(logits, { ...search, rule: 'hf', lengthPenalty: 0.4, earlyStopping: 1 }),
      )
      // The ends are come to, and the rules differ.
      expect([...plain, ...short].some(({ finish }) => finish === 'end')).toBe(true)
      expect(short).not.toEqual(plain)
      const [alone] = await model.generate(inputs.slice(1, 2), { beams: width, returned: width, maxNewTokens: steps })
      expect(alone?.ids).toEqual(plain[1]?.ids)
      const streamed: unknown[] = []
      for await (const each of model.stream(inputs, { beams: width, maxNewTokens: steps })) streamed.push(each)
      expect(streamed).toEqual(plain.map(({ ids, finish }, index) => ({ index, ids, finish })))
    })
  })
})
