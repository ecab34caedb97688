/** Beams of LLaMA-like models on simt in float32 against HF's own search: every hypothesis and its score, regardless of its end. */
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { logitTolerance } from '../../src/verify/tolerance.js'
import { inTurn } from '../turns.js'
import { type FamilyName, folderOf, withEnds, withLlama } from './llama_host.js'

const ids = z.array(z.int())
/** Output of `test/peers/llama_beams.py`: hypotheses after each prompt, the best first. */
const schema = z.object({
  width: z.int(),
  steps: z.int(),
  ends: ids,
  prompts: z.array(ids),
  searches: z.array(
    z.object({
      length_penalty: z.number(),
      early_stopping: z.union([z.boolean(), z.literal('never')]),
      found: z.array(z.array(z.object({ ids, score: z.number() }))),
    }),
  ),
})

const models: readonly (readonly [FamilyName, string])[] = [
  ['llama3', 'best-llama'],
  ['mistral', 'unfused'],
  ['qwen3', 'best-llama'],
  ['smollm', 'best-llama'],
]

/** Ids of the hypotheses after each prompt. */
const idsOf = (found: readonly (readonly { readonly ids: readonly number[] }[])[]) =>
  found.map((hypotheses) => hypotheses.map((hypothesis) => hypothesis.ids))

it.each(inTurn(models))('%s under %s finds the hypotheses of HF', async (name, plan) => {
  const { width, steps, ends, prompts, searches } = schema.parse(JSON.parse(readFileSync(`${folderOf(name)}/beams.json`, 'utf8')))
  const inputs = prompts.map((inputIds) => ({ inputIds }))
  await withLlama(name, { plan, dir: await withEnds(name, ends) }, async (model) => {
    const search = async (options: Parameters<typeof model.generate>[1]) => {
      const results = await model.generate(inputs, { beams: width, returned: width, maxNewTokens: steps, ...options })
      return results.map(({ beams = [] }) => beams)
    }
    const plain = await search({ rule: 'plain' })
    for (const { length_penalty: lengthPenalty, early_stopping: earlyStopping, found: golden } of searches) {
      const found = await search({ rule: 'hf', lengthPenalty, earlyStopping })
      expect(idsOf(found)).toEqual(idsOf(golden))
      const distances = golden.flatMap((all, i) =>
        all.map(({ score }, at) => Math.abs((found[i]?.[at]?.score ?? Number.NaN) - score)),
      )
      expect(Math.max(...distances)).toBeLessThan(steps * logitTolerance.relative)
      // Another rule finds others.
      expect(idsOf(plain)).not.toEqual(idsOf(golden))
    }
  })
})
