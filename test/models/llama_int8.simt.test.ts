/**
 * LLaMA-like models with int8 weights on simt. What int8 weights stand for can be written as a checkpoint of floats, which has to give the
 * same; channels that are far larger than others, which floats do not notice, cost int8 activations what they must cost; and steps choose
 * the words that reading the same tokens puts first.
 */
import { describe, expect, it } from 'vitest'
import { quantiseWeights } from '../../src/runtime/quantise_weights.js'
import { int8Likelihood, logitTolerance } from '../../src/verify/tolerance.js'
import { type Change, distance, scoreOf, spread, textOf, underPlan, withChanged, withFolder } from './llama_changed.js'
import { folderOf } from './llama_host.js'

describe('int8 weights alone', () => {
  const rounded =
    (axis: 'rows' | 'tensor'): Change =>
    (name, values, shape) => {
      const [rows = 1, columns = 1] = shape
      if (!/layers.*_proj\.weight$/.test(name)) return values
      const matrix = axis === 'rows' ? { rows, columns } : { rows: 1, columns: rows * columns }
      const { values: ints, scales } = quantiseWeights({ name, values, ...matrix })
      return Float32Array.from(ints, (int, i) => int * (scales[Math.floor(i / matrix.columns)] ?? Number.NaN))
    }

  it.each(['llama3', 'phi3', 'qwen3'] as const)('%s gives what floats of the same numbers give', async (family) => {
    const found = await underPlan(family, 'best-llama-int8w')
    const wanted = await withChanged(family, rounded('rows'), 'unfused', scoreOf(family))
    expect(distance(found, wanted)).toBeLessThan(logitTolerance.relative)
    // The numbers of the checkpoint are others.
    expect(distance(found, await underPlan(family, 'unfused'))).toBeGreaterThan(10 * logitTolerance.relative)
  })

  it('with one step for a whole matrix are others: the comparison can fail', async () => {
    const found = await underPlan('llama3', 'best-llama-int8w')
    const wrong = await withChanged('llama3', rounded('tensor'), 'unfused', scoreOf('llama3'))
    expect(distance(found, wrong)).toBeGreaterThan(10 * logitTolerance.relative)
  })
})

describe('int8 activations', () => {
  it('lose channels beside others that are far larger, which floats do not notice', async () => {
    const large = [1, 17, 60]
    const outlying: Change = (name, values, [, columns = 1]) => {
      if (/layers.*layernorm\.weight$/.test(name)) return values.map((value, i) => (large.includes(i) ? value * 50 : value))
      if (!/layers.*(q|k|v|gate|up)_proj\.weight$/.test(name)) return values
      return values.map((value, i) => (large.includes(i % columns) ? value / 50 : value))
    }
    const floats = await underPlan('llama3', 'unfused')
    const same = await withChanged('llama3', outlying, 'unfused', scoreOf('llama3'))
    expect(distance(same, floats)).toBeLessThan(logitTolerance.relative)
    const usual = spread(await underPlan('llama3', 'best-llama-w8a8'), floats)
    const worse = spread(await withChanged('llama3', outlying, 'best-llama-w8a8', scoreOf('llama3')), floats)
    expect(worse - usual).toBeGreaterThan(int8Likelihood.outliers)
  })
})

describe('steps choose what prompts of the same tokens put first', () => {
  it.each(['best-llama-int8w', 'best-llama-w8a8', 'fasterllama-v1'])('%s', async (plan) => {
    const prompts = [9, 40].map((length) => textOf('qwen3').inputIds.slice(0, length))
    await withFolder(folderOf('qwen3'), plan, async (model) => {
      const chosen = await model.generate(
        prompts.map((inputIds) => ({ inputIds })),
        { maxNewTokens: 4 },
      )
      for (const [i, prompt] of prompts.entries()) {
        const words = chosen[i]?.ids ?? []
        const asked = words.map((_, step) => prompt.length - 1 + step)
        const [told] = await model.score([{ inputIds: [...prompt, ...words] }], { places: asked })
        for (const [step, word] of words.entries()) {
          const logits = told?.logits[step] ?? new Float32Array()
          const most = logits.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY)
          expect(most - (logits[word] ?? Number.NaN)).toBeLessThan(int8Likelihood.activations * (1 + most))
        }
      }
    })
  })
})
