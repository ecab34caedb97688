/**
 * A trained model of the LLaMA-3 kind on simt in float32 against HF: six heads of 128 over two key heads, hidden size 240; scaled rotations, tied
 * tokens, stored as bf16. Tokens after every short prompt and a longer one, logits at positions of a text on both sides of blocks of keys.
 */
import { expect, it } from 'vitest'
import { beforeEnd } from '../../src/models/decoding/beam_trace.js'
import { loadLlama } from '../../src/models/llama/llama_pipeline.js'
import { logitTolerance } from '../../src/verify/tolerance.js'
import { farthest, readGolden } from './llama_host.js'
import { openSimtKernels } from './simt.js'
import { kjvGqa } from './text_fixtures.js'

/** Kinds of prompts, new tokens, and positions of the text: as many as a plan runs in seconds on this device. */
const extents = [
  ['unfused', { count: 11, longer: 1, tokens: 64, most: 513 }],
  ['best-llama', { count: 2, longer: 0, tokens: 5, most: 65 }],
] as const

it.each(extents)('%s chooses the words of HF, and gives its logits', async (plan, { count, longer, tokens, most }) => {
  const { cases, long, text } = readGolden(kjvGqa)
  const model = await loadLlama(kjvGqa, { ...(await openSimtKernels()), plan })
  try {
    for (const prompts of [cases.slice(0, count), long.slice(0, longer)].filter(({ length }) => length > 0)) {
      const found = await model.generate(
        prompts.map(({ input_ids: inputIds }) => ({ inputIds })),
        { maxNewTokens: tokens, batch: 16 },
      )
      for (const [i, { greedy_ids: golden, smallest_gap: gap }] of prompts.entries()) {
        expect(gap).toBeGreaterThan(logitTolerance.separated)
        expect(found[i]?.ids.slice(0, golden.length)).toEqual(beforeEnd(golden, model.config.eos).slice(0, tokens))
      }
    }
    const places = text.places.filter((place) => place < most)
    const [score] = await model.score([{ inputIds: text.input_ids.slice(0, most) }], { places })
    const distances = places.map((_, i) => farthest(score?.logits[i] ?? [], text.logits[i] ?? []))
    expect(Math.max(...distances)).toBeLessThan(logitTolerance.relative)
  } finally {
    model.release()
  }
})
