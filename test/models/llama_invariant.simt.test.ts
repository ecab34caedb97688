/**
 * Results that are the same bit for bit, whatever else is in a batch and however texts are read, where that is asked for; by kernels of halves, among which
 * those for few rows add up otherwise than those for many. Without being asked for, bits differ: the comparison notices it.
 */
import { expect, it } from 'vitest'
import type { Llama, LlamaGenerateOptions } from '../../src/models/llama/llama_types.js'
import { goldenOf, withLlama } from './llama_host.js'

const lengths = [1, 2, 7, 64, 129]
const ids = goldenOf('smollm').text.input_ids
const cases = lengths.map((length) => ({ inputIds: ids.slice(0, length) }))
const shape = { invariant: 8, capacity: 144 } as const

/** Sums of log-probabilities tell the bits of steps, one beam at a time. */
const stepsOf = async (model: Llama, options: LlamaGenerateOptions, given = cases): Promise<readonly unknown[]> =>
  (await model.generate(given, { rule: 'plain', maxNewTokens: 3, ...options })).map(({ beams }) => beams)

it('bits depend on no other row, on no order and on no chunks where that is asked for, and otherwise do', async () => {
  await withLlama('smollm', { plan: 'best-llama', dtype: 'f16' }, async (model) => {
    const alone = async (options: LlamaGenerateOptions) => {
      const found: unknown[] = []
      for (const item of cases) found.push(...(await stepsOf(model, options, [item])))
      return found
    }
    const together = await stepsOf(model, shape)
    expect(await alone(shape)).toEqual(together)
    expect(await stepsOf(model, { ...shape, batch: 3, chunk: 7 }, [...cases].reverse())).toEqual([...together].reverse())
    expect(await alone({})).not.toEqual(await stepsOf(model, {}))

    // A text that is found in the caches, and one that is read.
    const longer = [{ inputIds: [...ids.slice(0, 129), 5, 6] }]
    const fresh = await stepsOf(model, shape, longer)
    await model.generate(cases.slice(-1), { ...shape, maxNewTokens: 2 })
    expect(await stepsOf(model, { ...shape, reuse: true }, longer)).toEqual(fresh)

    const texts = cases.slice(2)
    const scores = await model.score(texts, shape)
    for (const chunk of [7, 100]) expect(await model.score(texts, { ...shape, chunk })).toEqual(scores)
    expect(await model.score(texts.slice(1, 2), shape)).toEqual(scores.slice(1, 2))
    const usual = await model.score(texts)
    expect(await Promise.all(texts.map(async (text) => (await model.score([text], { chunk: 7 }))[0]))).not.toEqual(usual)
  })
})
