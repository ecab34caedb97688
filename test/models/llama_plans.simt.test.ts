/** LLaMA-like models under plans that fuse, on simt in float32 against HF. Fused kernels differ with biases, norms of heads and windows. */
import { describe, expect, it } from 'vitest'
import { beforeEnd } from '../../src/models/decoding/beam_trace.js'
import { logitTolerance } from '../../src/verify/tolerance.js'
import { inTurn } from '../turns.js'
import { families, farthest, goldenOf, withLlama } from './llama_host.js'

// True if two threads write one element of an output, such as the positions of heads that several share, is watched here.
process.env.HEDDLE_SIMT_RACE = '1'

describe('best-llama', () => {
  it.each(inTurn(families))('%s chooses the words of HF, and gives its logits', async (name) => {
    const { cases, text } = goldenOf(name)
    await withLlama(name, { plan: 'best-llama' }, async (model) => {
      const short = cases.filter(({ input_ids: { length } }) => length < 100)
      const inputs = short.map(({ input_ids: inputIds }) => ({ inputIds }))
      const found = await model.generate(inputs, { maxNewTokens: 12 })
      for (const [i, { greedy_ids: golden, smallest_gap: gap }] of short.entries()) {
        if (gap >= logitTolerance.separated) expect(found[i]?.ids).toEqual(beforeEnd(golden, model.config.eos).slice(0, 12))
      }
      const places = text.places.filter((place) => place < 70)
      const [score] = await model.score([{ inputIds: text.input_ids.slice(0, 70) }], { places, chunk: 48 })
      const distances = places.map((_, i) => farthest(score?.logits[i] ?? [], text.logits[i] ?? []))
      expect(Math.max(...distances)).toBeLessThan(logitTolerance.relative)
    })
  })
})
