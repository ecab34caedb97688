/**
 * Float32 caches of a model in f16 on simt, the precision of FasterLLaMA: attention and its caches are float32 between activations in f16, under the
 * graph itself and under `fasterllama-v1`. HF's tokens of `kjv-gqa`, whose query heads share keys, from ragged prompts.
 */
import { describe, expect, it } from 'vitest'
import type { CacheType } from '../../specs/graphs/llama_caches.js'
import { resolveDType } from '../../src/ir/instance.js'
import { beforeEnd } from '../../src/models/decoding/beam_trace.js'
import { readLlamaConfig } from '../../src/models/llama/config.js'
import { loadLlama } from '../../src/models/llama/llama_pipeline.js'
import type { Llama, LlamaOptions } from '../../src/models/llama/llama_types.js'
import { promptProgram, withCaches } from '../../src/models/llama/programs.js'
import type { Score } from '../../src/models/llama/score.js'
import { int8Likelihood, modelTolerance } from '../../src/verify/tolerance.js'
import { kernels, spread } from './llama_changed.js'
import { readGolden } from './llama_host.js'
import { kjvGqa } from './text_fixtures.js'

/** Layers of the model. */
const layers = 4
const { cases, text } = readGolden(kjvGqa)
const prompts = cases.filter(({ smallest_gap: gap }) => gap > modelTolerance('f16', layers).absolute).slice(0, 3)

async function withModel<T>(options: Partial<LlamaOptions>, use: (model: Llama) => Promise<T>): Promise<T> {
  const model = await loadLlama(kjvGqa, { ...(await kernels), dtype: 'f16', ...options })
  try {
    return await use(model)
  } finally {
    model.release()
  }
}

const generate = (model: Llama, beams = 1) =>
  model.generate(
    prompts.map(({ input_ids: inputIds }) => ({ inputIds })),
    { maxNewTokens: 6, ...(beams === 1 ? {} : { beams, rule: 'plain' as const }) },
  )

/** Distance of mean negative log-likelihoods. */
const apart = (a: Score, b: Score) => {
  const mean = ({ losses }: Score) => losses.reduce((sum, loss) => sum + loss, 0) / losses.length
  return Math.abs(mean(a) - mean(b))
}

const score = async (model: Llama) => {
  const [found] = await model.score([{ inputIds: text.input_ids.slice(0, 33) }])
  if (found === undefined) throw new Error('no score')
  return found
}

describe('float32 caches in f16', () => {
  it('prompts that are compared have no near ties', () => {
    expect(new Set(prompts.map(({ input_ids: { length } }) => length)).size).toBeGreaterThan(1)
  })

  it('the tokens are those of HF, and likelihoods those of f16 caches up to rounding', async () => {
    const of = (caches: CacheType) =>
      withModel({ plan: 'unfused', caches }, async (model) => {
        const words = await generate(model)
        return { ids: words.map(({ ids }) => ids), eos: model.config.eos, score: await score(model) }
      })
    const wide = await of('f32')
    expect(wide.ids).toEqual(prompts.map(({ greedy_ids: golden }) => beforeEnd(golden, wide.eos).slice(0, 6)))
    const narrow = await of('float')
    expect(spread(wide.score, narrow.score)).toBeGreaterThan(0)
    expect(apart(wide.score, narrow.score)).toBeLessThan(int8Likelihood.caches)
  })

  it('fasterllama-v1 has them in prompts, steps and beams', async () => {
    const around = await withModel({ plan: 'unfused', caches: 'f32' }, score)
    await withModel({ plan: 'fasterllama-v1', caches: 'f32' }, async (model) => {
      expect(apart(await score(model), around)).toBeLessThan(int8Likelihood.activations)
      const greedy = await generate(model)
      expect(greedy.map(({ ids: [first] }) => first)).toEqual(prompts.map(({ greedy_ids: [first] }) => first))
      expect((await generate(model, 2)).every(({ ids }) => ids.length > 0)).toBe(true)
    })
  })

  it('plans whose attention reads other caches are refused', async () => {
    await expect(withModel({ plan: 'best-llama', caches: 'f32' }, score)).rejects.toMatchObject({ code: 'plan.model' })
  })
})

it('states are float32 in a model of another type, and those of `float` in a model in float32', async () => {
  const config = await readLlamaConfig(kjvGqa)
  const dtypesOf = (caches: CacheType, dtype: 'f32' | 'f16') => {
    const { states, values } = promptProgram(withCaches(config, caches, dtype), 'nothing')
    return new Set(Object.values(states).map(({ value }) => resolveDType(values[value]?.dtype ?? 'bool', { T: dtype })))
  }
  expect(dtypesOf('f32', 'f16')).toEqual(new Set(['f32']))
  expect(dtypesOf('float', 'f16')).toEqual(new Set(['f16']))
  expect(withCaches(config, 'f32', 'f32')).toEqual(withCaches(config, 'float', 'f32'))
})
