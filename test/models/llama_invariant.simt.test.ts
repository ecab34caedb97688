/**
 * Results with the same bits on request, regardless of the batch and however texts are read; with half-precision kernels, of which those for few rows
 * add in another order than those for many. Without the request, bits differ: the comparison notices it.
 */
import { describe, expect, it } from 'vitest'
import type { Llama, LlamaGenerateOptions } from '../../src/models/llama/llama_types.js'
import { logitTolerance } from '../../src/verify/tolerance.js'
import { inTurn } from '../turns.js'
import { farthest, goldenOf, withLlama } from './llama_host.js'
import { withRows } from './llama_rows.js'

const lengths = [1, 2, 7, 33, 70]
const ids = goldenOf('smollm').text.input_ids
const cases = lengths.map((length) => ({ inputIds: ids.slice(0, length) }))
const shape = { invariant: 8, capacity: 144 } as const

/** Sums of log-probabilities reveal differences in single bits of steps, one beam at a time. */
const stepsOf = async (model: Llama, options: LlamaGenerateOptions, given = cases): Promise<readonly unknown[]> =>
  (await model.generate(given, { rule: 'plain', maxNewTokens: 3, ...options })).map(({ beams }) => beams)

it('bits depend on no other row, no order and no chunks on request, and otherwise do', async () => {
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

    // A text found in the caches, and one that is read.
    const longer = [{ inputIds: [...ids.slice(0, 70), 5, 6] }]
    const fresh = await stepsOf(model, shape, longer)
    await model.generate(cases.slice(-1), { ...shape, maxNewTokens: 2 })
    expect(await stepsOf(model, { ...shape, reuse: true }, longer)).toEqual(fresh)

    const texts = cases.slice(2)
    const scores = await model.score(texts, shape)
    for (const chunk of [7, 64]) expect(await model.score(texts, { ...shape, chunk })).toEqual(scores)
    expect(await model.score(texts.slice(1, 2), shape)).toEqual(scores.slice(1, 2))
    const usual = await model.score(texts)
    expect(await Promise.all(texts.map(async (text) => (await model.score([text], { chunk: 7 }))[0]))).not.toEqual(usual)
  })
})

describe.each(['plain', 'hf'] as const)('beams by the rule %s', (rule) => {
  it('after prompts of any lengths are bit-identical to those of each alone, in the given order', async () => {
    const given = [7, 2, 1, 2, 30].map((length, at) => ({ inputIds: ids.slice(at, at + length) }))
    const options = { rule, beams: 3, returned: 3, maxNewTokens: 6, invariant: 4, capacity: 64 } as const
    await withLlama('smollm', { plan: 'unfused' }, async (model) => {
      const together = await model.generate(given, options)
      for (const [at, item] of given.entries()) expect(await model.generate([item], options)).toEqual([together[at]])
      expect(await model.generate([...given].reverse(), options)).toEqual([...together].reverse())
      const streamed: unknown[] = []
      for await (const { index, ids: found } of model.stream(given, options)) streamed[index] = found
      expect(streamed).toEqual(together.map(({ ids: found }) => found))
      // In a batch with longer prompts, without the request, beams are added in another order.
      const { invariant: _, ...usual } = options
      const beside = await model.generate(given, usual)
      const alone = await Promise.all(given.map(async (item) => (await model.generate([item], usual))[0]))
      expect(beside).not.toEqual(alone)
    })
  })
})

const floats = ['unfused', 'best-llama', 'best-llama-w8a8'].map((plan) => ({ plan, dtype: 'f16', pass: 32 }) as const)

describe.each(inTurn(floats))('under $plan', (settings) => {
  it('a text that returns to an earlier place and continues differently is bit-identical to a fresh one', async () => {
    await withRows('smollm', settings, async ({ append, cached, read }) => {
      let text = ids.slice(0, 50)
      await read(0, text)
      // Back to any position, to shorter texts and to longer ones than before.
      for (const [kept, more] of [
        [13, ids.slice(100, 120)],
        [32, ids.slice(60, 61)],
        [5, ids.slice(80, 112)],
        [36, ids.slice(30, 50)],
      ] as const) {
        text = [...text.slice(0, kept), ...more]
        const last = text.length - 1
        const found = await append(0, kept, more)
        await read(1, text.slice(0, -1))
        expect(found).toEqual(await append(1, last, text.slice(-1)))
        expect(await cached(0, text.length)).toEqual(await cached(1, text.length))
        // One position further it is another text.
        expect(await append(1, kept + 1, more)).not.toEqual(found)
      }
    })
  })

  it('chunks of any size are the whole, and steps of a row know no other, bit for bit', async () => {
    await withRows('smollm', settings, async ({ append, cached, read, step }) => {
      const [long, short] = [ids.slice(0, 50), ids.slice(70, 77)]
      await read(0, long)
      for (let at = 0, size = 1; at < 50; at += size, size = Math.min(size * 3, 50 - at))
        await append(1, at, long.slice(at, at + size))
      const whole = await cached(0, 50)
      expect(await cached(1, 50)).toEqual(whole)
      // The first step writes existing values again, each other one more position.
      const [alone] = await step([long])
      const behind = await cached(0, 57)
      await read(0, short)
      await read(1, long)
      const [, other] = await step([short, long])
      expect(other).toEqual(alone)
      expect(await cached(1, 57)).toEqual(behind)
      expect(await cached(0, 50)).not.toEqual(whole)
    })
  })
})

it('a step after n tokens caches the same as reading n + 1: bit-identical if its kernels add in the order of those for prompts, nearly under best-llama', async () => {
  const prompt = ids.slice(0, 38)
  const plans = [
    ['unfused', true],
    ['fasterllama-v1', true],
    ['best-llama', false],
  ] as const
  for (const [plan, exact] of inTurn(plans)) {
    await withRows('smollm', { plan, dtype: 'f32', pass: 32 }, async ({ cached, read, step }) => {
      await read(0, prompt)
      const whole = await cached(0, 38)
      await read(0, prompt.slice(0, -1).with(0, 7))
      await read(0, prompt.slice(0, -1))
      await step([prompt])
      const found = await cached(0, 38)
      if (exact) expect(found).toEqual(whole)
      else expect(found).not.toEqual(whole)
      expect(Math.max(...whole.map((part, i) => farthest(found[i] ?? [], part)))).toBeLessThan(logitTolerance.relative)
    })
  }
})
