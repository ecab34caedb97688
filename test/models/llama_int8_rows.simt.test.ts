/** LLaMA-like models with int8 activations on simt: plans that quantise them agree with each other. */
import { describe, expect, it } from 'vitest'
import { int8Likelihood, logitTolerance } from '../../src/verify/tolerance.js'
import { distance, spread, underPlan } from './llama_changed.js'

describe('int8 activations', () => {
  it.each(['llama3', 'mistral', 'qwen2', 'qwen3'] as const)('%s gives the same with few kernels as with many', async (family) => {
    const [few, many] = [await underPlan(family, 'best-llama-w8a8'), await underPlan(family, 'fasterllama-v1')]
    // Another order of float32 sums may tip a rounding of an activation now and then.
    expect(spread(few, many)).toBeLessThan(int8Likelihood.activations)
    const weights = await underPlan(family, 'best-llama-int8w')
    expect(distance(few, weights)).toBeGreaterThan(10 * logitTolerance.relative)
    expect(spread(few, weights)).toBeLessThan(1)
  })
})
