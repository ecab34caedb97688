/**
 * LLaMA-like models with int8 weights on simt. The values of int8 weights can be written as a float checkpoint, which has to give the same results;
 * plans that quantise activations agree with each other; steps choose the tokens that reading the same tokens ranks first; and channels that are far
 * larger than others, which do not affect floats, cost the expected accuracy.
 */
import { rm } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { openLlama } from '../../src/cli/llama.js'
import { calibrateLlama } from '../../src/models/llama/calibration.js'
import type { Llama, LlamaOptions } from '../../src/models/llama/llama_types.js'
import { quantiseWeights } from '../../src/runtime/quantise_weights.js'
import { int8Likelihood, logitTolerance } from '../../src/verify/tolerance.js'
import { inTurn } from '../turns.js'
import {
  type Change,
  changedFolder,
  distance,
  type Folder,
  kernels,
  scoreOf,
  spread,
  textOf,
  underPlan,
  withChanged,
  withFolder,
} from './llama_changed.js'
import { packed, packedW8a16, w8a8 } from './llama_fixtures.js'
import { folderOf, goldenOf } from './llama_host.js'

describe('weight-only int8', () => {
  const rounded =
    (axis: 'rows' | 'tensor'): Change =>
    (name, values, shape) => {
      const [rows = 1, columns = 1] = shape
      if (!/layers.*_proj\.weight$/.test(name)) return values
      const matrix = axis === 'rows' ? { rows, columns } : { rows: 1, columns: rows * columns }
      const { values: ints, scales } = quantiseWeights({ name, values, ...matrix })
      return Float32Array.from(ints, (int, i) => int * (scales[Math.floor(i / matrix.columns)] ?? Number.NaN))
    }

  it.each(inTurn(['llama3', 'phi3', 'qwen3'] as const))('%s gives the same as floats of the same numbers', async (family) => {
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

describe('a folder of int8 weights', () => {
  /** Integers that do not use their whole range: requantised from their floats they would differ. */
  const most = 90
  const int8Folder: Folder = (json, tensors) => {
    for (const [name, { shape, data }] of [...tensors]) {
      if (!/layers.*_proj\.weight$/.test(name)) continue
      const [rows = 1, columns = 1] = shape
      const values = new Float32Array(data.buffer)
      const { scales } = quantiseWeights({ name, values, rows, columns })
      const steps = scales.map((step) => (step * 127) / most)
      const ints = Int8Array.from(values, (value, i) => Math.round(value / (steps[Math.floor(i / columns)] ?? 1)))
      tensors.set(name, { dtype: 'I8', shape, data: new Uint8Array(ints.buffer) })
      tensors.set(`${name}_scale`, { dtype: 'F32', shape: [rows, 1], data: new Uint8Array(steps.buffer) })
    }
    return { ...json, quantization_config: w8a8 }
  }
  const floatsOf: Change = (name, values, [rows = 1, columns = 1]) => {
    if (!/layers.*_proj\.weight$/.test(name)) return values
    const steps = quantiseWeights({ name, values, rows, columns }).scales.map((step) => (step * 127) / most)
    return values.map((value, i) => {
      const step = steps[Math.floor(i / columns)] ?? 1
      return Math.round(value / step) * step
    })
  }

  it('is used as stored by int8 plans, and as floats by others', async () => {
    const score = scoreOf('phi3')
    const floats = await withChanged('phi3', floatsOf, 'unfused', score)
    const dir = await changedFolder('phi3', (_, values) => values, int8Folder)
    try {
      const found = async (plan: string) =>
        withFolder(dir, plan, async (model) => ({ bytes: model.weightBytes, ...(await score(model)) }))
      const [plain, weights, both] = [await found('unfused'), await found('best-llama-int8w'), await found('best-llama-w8a8')]
      expect(distance(plain, floats)).toBeLessThan(logitTolerance.relative)
      expect(distance(weights, floats)).toBeLessThan(logitTolerance.relative)
      expect(weights.bytes).toBeLessThan(plain.bytes)
      expect(spread(both, floats)).toBeLessThan(1)
      expect(distance(both, floats)).toBeGreaterThan(10 * logitTolerance.relative)
      expect(spread(await found('fasterllama-v1'), both)).toBeLessThan(int8Likelihood.activations)
      // Without a named plan, the plan that fits the folder is used, with a note; a folder of floats has none.
      for (const [folder, plan, reason] of [
        [dir, 'best-llama-w8a8', /^int8 weights and activations, as the model is stored/],
        [folderOf('phi3'), 'unfused', /own/],
      ] as const) {
        const opened = await openLlama(folder, { device: 'simt' })
        opened.close()
        expect([opened.model.plan, opened.planReason]).toEqual([plan, expect.stringMatching(reason)])
      }
      // The twin: int8 quantised from the same floats has other integers.
      const again = await withChanged('phi3', floatsOf, 'best-llama-int8w', score)
      expect(distance(again, weights)).toBeGreaterThan(10 * logitTolerance.relative)
    } finally {
      await rm(dir, { recursive: true })
    }
  })

  /** The same with weights alone, packed, and the keys of a layer in floats. */
  const packedFolder: Folder = (json, tensors) => {
    const keys = 'model.layers.0.self_attn.k_proj'
    const floats = tensors.get(`${keys}.weight`)
    const made = int8Folder(json, tensors)
    if (floats !== undefined) tensors.set(`${keys}.weight`, floats)
    tensors.delete(`${keys}.weight_scale`)
    packed({ tensors })
    return { ...made, quantization_config: { ...packedW8a16, ignore: ['lm_head', keys] } }
  }

  it('with float activations equals its floats, and so do the weights stored in floats', async () => {
    const score = scoreOf('llama3')
    const kept: Change = (name, values, shape) =>
      name.includes('layers.0.self_attn.k_proj') ? values : floatsOf(name, values, shape)
    const floats = await withChanged('llama3', kept, 'unfused', score)
    const dir = await changedFolder('llama3', (_, values) => values, packedFolder)
    try {
      const found = (plan: string) => withFolder(dir, plan, score)
      expect(distance(await found('unfused'), floats)).toBeLessThan(logitTolerance.relative)
      // Keys are rounded next to queries and values that are int8 already; nothing else is rounded.
      const rounded: Change = (name, values, [rows = 1, columns = 1]) => {
        if (!name.includes('layers.0.self_attn.k_proj.weight')) return floatsOf(name, values, [rows, columns])
        const { values: ints, scales } = quantiseWeights({ name, values, rows, columns })
        return Float32Array.from(ints, (int, i) => int * (scales[Math.floor(i / columns)] ?? Number.NaN))
      }
      const wanted = await withChanged('llama3', rounded, 'unfused', score)
      expect(distance(await found('best-llama-int8w'), wanted)).toBeLessThan(logitTolerance.relative)
      const opened = await openLlama(dir, { device: 'simt' })
      opened.close()
      expect(opened.model.plan).toBe('unfused')
    } finally {
      await rm(dir, { recursive: true })
    }
  })
})

describe('int8 activations', () => {
  it('lose accuracy for channels next to far larger ones, which does not affect floats and which smoothing moves into weights', async () => {
    // All quantised rows: results of norms, attention and the gate, with the weights after them scaled inversely.
    const large = [1, 17, 60]
    const channels = new Set([...large, 30, 45])
    const outlying: Change = (name, values, [, columns = 1]) => {
      const isRow = /(v|up)_proj\.weight$/.test(name)
      const of = (row: number, column: number): number => (isRow && channels.has(row) ? 50 : 1) / (channels.has(column) ? 50 : 1)
      if (/layers.*layernorm\.weight$/.test(name)) return values.map((value, i) => (channels.has(i) ? value * 50 : value))
      if (/layers.*(q|k|v|gate|up)_proj\.weight$/.test(name))
        return values.map((value, i) => value * of(Math.floor(i / columns), i % columns))
      if (/layers.*down_proj\.weight$/.test(name)) return values.map((value, i) => value * of(-1, i % columns))
      return values
    }
    const value: Change = (name, values, [rows = 1, columns = 1]) => {
      // Heads of queries that share a head of values have its channels.
      const { d, shared } = { d: 64, shared: 4 }
      if (!/layers.*o_proj\.weight$/.test(name)) return outlying(name, values, [rows, columns])
      const source = (column: number): number => Math.floor(Math.floor(column / d) / shared) * d + (column % d)
      return values.map((each, i) => (channels.has(source(i % columns)) ? each / 50 : each))
    }
    const floats = await underPlan('llama3', 'unfused')
    const usual = spread(await underPlan('llama3', 'best-llama-w8a8'), floats)
    const dir = await changedFolder('llama3', value)
    try {
      expect(distance(await withFolder(dir, 'unfused', scoreOf('llama3')), floats)).toBeLessThan(logitTolerance.relative)
      const under = (plan: string, smooth?: LlamaOptions['smooth'], of = dir) => withFolder(of, plan, scoreOf('llama3'), smooth)
      const worse = await under('best-llama-w8a8')
      expect(spread(worse, floats) - usual).toBeGreaterThan(int8Likelihood.outliers)
      const text = { inputIds: goldenOf('llama3').text.input_ids.slice(64, 128) }
      const calibrated = async (of: string) => calibrateLlama(of, [text], { ...(await kernels), rotation: 'float32' })
      const [found, plain] = [await calibrated(dir), await calibrated(folderOf('llama3'))]
      expect(Object.keys(found.values)).toContain('layer0/layer0.context')
      // The factors of both models differ in these channels, so that they are the same model after smoothing.
      const wanted = await under('best-llama-w8a8', { channels: plain }, folderOf('llama3'))
      for (const plan of ['best-llama-w8a8', 'fasterllama-v1']) {
        const smoothed = await under(plan, { channels: found })
        expect(spread(smoothed, wanted)).toBeLessThan(int8Likelihood.activations)
        expect(spread(worse, floats) - spread(smoothed, floats)).toBeGreaterThan(int8Likelihood.outliers)
      }
      expect(spread(worse, wanted)).toBeGreaterThan(int8Likelihood.outliers)
      // Prompts and steps are over the same caches, whose values are divided.
      await withFolder(dir, 'best-llama-w8a8', (model) => expectSteps(model, [text.inputIds.slice(0, 20)]), { channels: found })
      await expect(under('best-llama-int8w', { channels: found })).rejects.toMatchObject({ code: 'smooth.plan' })
      await expect(under('best-llama-w8a8', { channels: found, alpha: 2 })).rejects.toMatchObject({ code: 'smooth.alpha' })
      const others = withFolder(folderOf('llama3'), 'best-llama-w8a8', scoreOf('llama3'), { channels: found })
      await expect(others).rejects.toMatchObject({ code: 'scales.model' })
    } finally {
      await rm(dir, { recursive: true })
    }
  })
})

/** Steps choose tokens, and reading prompts followed by these tokens ranks the same ones first. */
async function expectSteps(model: Llama, prompts: readonly (readonly number[])[]): Promise<void> {
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
}

describe('steps choose the words that prompts of the same tokens rank first', () => {
  it.each(inTurn(['best-llama-int8w', 'best-llama-w8a8', 'fasterllama-v1']))('%s', async (plan) => {
    const prompts = [9, 40].map((length) => textOf('qwen3').inputIds.slice(0, length))
    await withFolder(folderOf('qwen3'), plan, (model) => expectSteps(model, prompts))
  })
})
