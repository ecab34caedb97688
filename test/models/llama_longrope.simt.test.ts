/**
 * Beams with longrope on simt: the table of a pass depends on the length of the texts at that time, as in Hugging Face's `generate`. The
 * expected beams follow the rules on logits of whole texts, each computed with the table of its length.
 */
import { describe, expect, it } from 'vitest'
import { countFor } from '../../src/ir/top_k.js'
import type { Llama, LlamaGenerateOptions } from '../../src/models/llama/llama_types.js'
import { logitTolerance } from '../../src/verify/tolerance.js'
import { hfRule, type Model, plainRule, type Search } from './beam_search.js'
import { goldenOf } from './llama_host.js'
import { withLongrope } from './llama_longrope.js'
import { found } from './llama_searches.js'

const original = 24
const width = 3
const { text } = goldenOf('phi3')
const promptOf = (length: number): readonly number[] => text.input_ids.slice(0, length)

interface Asked {
  readonly options: LlamaGenerateOptions
  readonly rule: (logits: Model, search: Search) => ReturnType<typeof plainRule>
}
const plain: Asked = { options: { rule: 'plain' }, rule: (logits, search) => plainRule(logits, search) }
const hf: Asked = {
  options: { rule: 'hf', lengthPenalty: 1, earlyStopping: false },
  rule: (logits, search) => hfRule(logits, { ...search, rule: 'hf', lengthPenalty: 1, earlyStopping: 0 }),
}

const searched = async (model: Llama, prompts: readonly (readonly number[])[], { options }: Asked, steps: number) =>
  (
    await model.generate(
      prompts.map((inputIds) => ({ inputIds })),
      { beams: width, returned: width, maxNewTokens: steps, logprobs: true, ...options },
    )
  ).map(({ beams = [] }) => beams)

/** Compares results with the rule. */
async function compareWithRule(model: Llama, prompts: readonly (readonly number[])[], asked: Asked, steps: number) {
  const results = await searched(model, prompts, asked, steps)
  const search: Search = {
    ...{ rule: 'plain', models: [], vocab: model.config.vocab, width, steps },
    ...{ ends: model.config.eos, p: 1, k: countFor(width) },
  }
  for (const [i, prompt] of prompts.entries()) {
    const wanted = await found(model, prompt, (logits) => asked.rule(logits, search))
    expect(results[i]?.map(({ ids }) => ids)).toEqual(wanted.map(({ ids }) => ids))
    for (const [at, { score }] of wanted.entries())
      expect(Math.abs((results[i]?.[at]?.score ?? Number.NaN) - score)).toBeLessThan(steps * logitTolerance.relative)
    // No end id and no processor: a sum has the log-probabilities of all tokens, those of an earlier segment too.
    for (const { ids, logprobs = [], cumLogProb } of results[i] ?? []) {
      if (model.config.eos.length > 0) continue
      expect(logprobs).toHaveLength(ids.length)
      expect(Math.abs(logprobs.reduce((sum, each) => sum + each, 0) - cumLogProb)).toBeLessThan(steps * logitTolerance.relative)
    }
  }
  return results
}

describe.each([
  ['plain', plain],
  ['hf', hf],
] as const)('beams by the rule %s', (_, asked) => {
  it('use the short table while no pass is longer than the original positions, not counting the last token', async () => {
    const prompts = [promptOf(original - 3), promptOf(10)]
    await withLongrope(original, async (model) => {
      const results = await compareWithRule(model, prompts.slice(0, 1), asked, 4)
      // Nothing is long: with far more original positions it is the same, bit for bit.
      const never = await withLongrope(1024, (other) => searched(other, prompts.slice(0, 1), asked, 4))
      expect(results).toEqual(never)
      // One token more is one pass with the long table.
      const longer = await searched(model, prompts.slice(0, 1), asked, 5)
      expect(longer).not.toEqual(await withLongrope(1024, (other) => searched(other, prompts.slice(0, 1), asked, 5)))
    })
  })

  it('use the long table after longer prompts', async () => {
    await withLongrope(original, (model) => compareWithRule(model, [promptOf(original + 1), promptOf(40)], asked, 6))
  })

  it('change tables on the way, whatever else is in the batch', async () => {
    const prompts = [promptOf(original - 9), promptOf(original), promptOf(30), promptOf(original - 2), promptOf(3)]
    await withLongrope(original, async (model) => {
      const results = await compareWithRule(model, prompts, asked, 13)
      for (const at of [0, 3]) expect(await searched(model, prompts.slice(at, at + 1), asked, 13)).toEqual([results[at]])
      // Without the change results are others.
      const never = await withLongrope(1024, (other) => searched(other, prompts, asked, 13))
      for (const at of [0, 1, 3]) expect(never[at]).not.toEqual(results[at])
      expect(never[4]?.map(({ ids }) => ids)).toEqual(results[4]?.map(({ ids }) => ids))
      const streamed: unknown[] = []
      const inputs = prompts.map((inputIds) => ({ inputIds }))
      const options = { beams: width, maxNewTokens: 13, ...asked.options }
      for await (const { index, ids } of model.stream(inputs, options)) streamed[index] = ids
      expect(streamed).toEqual(results.map(([best]) => best?.ids))
    })
  })

  it('end before and after the change', async () => {
    const prompt = promptOf(original - 5)
    const [first] = await withLongrope(original, (model) => searched(model, [prompt], asked, 12))
    for (const at of [2, 7]) {
      const end = first?.[0]?.ids[at] ?? 0
      await withLongrope(original, (model) => compareWithRule(model, [prompt], asked, 12), [end])
    }
  })
})
