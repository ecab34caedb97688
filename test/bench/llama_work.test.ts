/**
 * Bytes, operations and memory of LLaMA-like models, compared with known numbers: parameter counts of the published models, and steps per second
 * that a device of a stated rate allows.
 */
import { describe, expect, it } from 'vitest'
import { randomCheckpoint } from '../../src/bench/llama/random_weights.js'
import { benchLlamaConfig } from '../../src/bench/llama/shapes.js'
import { cacheBytes, floorOf, type Products, promptWork, stepWork, weightBytes } from '../../src/bench/llama/work.js'
import { convertTensor } from '../../src/checkpoint/convert.js'
import { parseLlamaConfig } from '../../src/models/llama/config.js'
import { llamaWeights } from '../../src/models/llama/weights.js'
import { decode } from '../../src/runtime/buffer.js'
import { inMemory } from '../../src/runtime/weight.js'
import { smallLlama, smallMistral, smallPhi3 } from '../models/llama_fixtures.js'

const ceilings = { bandwidth: 4.26e12, peak: { f16: 790e12, bf16: 790e12, i8: 1580e12 } }

describe('memory', () => {
  it.each([
    ['7b', 6_738_415_616],
    ['8b', 8_030_261_248],
    ['1b', 1_235_814_400],
  ])('%s has the parameters that were published, and the tables of its rotation', async (name, parameters) => {
    const config = await benchLlamaConfig(name, '.')
    expect(weightBytes(config, 'f16', 'float') - 2 * parameters).toBe(4 * config.positions * config.headDim)
  })

  it('counts heads of keys, and not of queries, in caches', async () => {
    const config = await benchLlamaConfig('8b', '.')
    expect(cacheBytes(config, 'bf16', { rows: 2, capacity: 1024 })).toBe(2 * 32 * 8 * 128 * 1024 * 2 * 2)
    expect(cacheBytes({ ...config, caches: 'f32' }, 'bf16', { rows: 2, capacity: 1024 })).toBe(2 * 32 * 8 * 128 * 1024 * 2 * 4)
    // An integer for each channel, and a step for each head.
    expect(cacheBytes({ ...config, caches: 'int8' }, 'bf16', { rows: 2, capacity: 1024 })).toBe(2 * 32 * 8 * 1024 * 2 * (128 + 4))
  })
})

describe('floors', () => {
  it.each([
    ['7b', 'float', 1, 512, 315],
    ['7b', 'float', 8, 512, 2215],
    ['7b', 'float', 64, 512, 8970],
    ['7b', 'int8 weights', 1, 512, 608],
    ['1b', 'float', 1, 512, 1708],
    ['8b', 'float', 1, 32_768, 219],
  ] as const)('%s, %s products, %s x %s: about %s tokens a second', async (name, products: Products, rows, context, wanted) => {
    const config = await benchLlamaConfig(name, '.')
    const { milliseconds, bound } = floorOf(stepWork(config, 'f16', products, rows, context), ceilings, 'f16', products)
    expect(bound).toBe('bandwidth')
    const found = (1e3 * rows) / milliseconds
    expect(Math.abs(found / wanted - 1)).toBeLessThan(0.02)
  })

  it.each([
    [1, 512, 8.5],
    [1, 2048, 35.0],
    [8, 512, 67.8],
  ])('prompts %s x %s of 7b: about %s ms', async (rows, length, wanted) => {
    const config = await benchLlamaConfig('7b', '.')
    const { milliseconds, bound } = floorOf(promptWork(config, 'f16', 'float', rows, length), ceilings, 'f16', 'float')
    expect(bound).toBe('arithmetic')
    expect(Math.abs(milliseconds / wanted - 1)).toBeLessThan(0.04)
    const int8 = floorOf(promptWork(config, 'f16', 'int8', rows, length), ceilings, 'f16', 'int8')
    expect(int8.milliseconds).toBeLessThan(0.6 * milliseconds)
  })

  it('count at most the places of a window', () => {
    const [whole, windowed] = [smallLlama, smallMistral].map((json) => parseLlamaConfig(json, 'config.json'))
    if (whole === undefined || windowed === undefined) throw new Error('no configurations')
    const attention = (config: typeof whole, length: number) => promptWork(config, 'f16', 'float', 1, length).flops.attention
    expect(attention(windowed, 16)).toBe(attention(whole, 16))
    // A window of 16: the first 16 tokens see 1 to 16 keys, the others 16.
    expect(attention(windowed, 64) / attention(whole, 64)).toBe((136 + 48 * 16) / 2080)
    expect(stepWork(windowed, 'f16', 'float', 1, 64).bytes).toBe(stepWork(windowed, 'f16', 'float', 1, 16).bytes)
  })
})

describe('random weights', () => {
  it.each([
    ['one for each weight', smallLlama],
    ['some that are rows of one tensor', smallPhi3],
  ])('match the configuration, %s, without copies', async (_, json) => {
    const config = parseLlamaConfig(json, 'config.json')
    const weights = llamaWeights(config, randomCheckpoint(config, 'f16'), 'f16', 'stored')
    const gate = weights['layers.0.mlp.gate_proj.weight'] ?? weights['layers.0.mlp.gate_up_proj.weight[0:40]']
    const up = weights['layers.0.mlp.up_proj.weight'] ?? weights['layers.0.mlp.gate_up_proj.weight[40:80]']
    if (gate === undefined || up === undefined) throw new Error(`weights: ${Object.keys(weights).join(', ')}`)
    const [first, second] = [decode('f16', (await inMemory(gate)).data), decode('f16', (await inMemory(up)).data)]
    expect(first.length).toBe(48 * 40)
    const mean = first.reduce((sum, value) => sum + value, 0) / first.length
    const spread = Math.sqrt(first.reduce((sum, value) => sum + (value - mean) ** 2, 0) / first.length)
    expect(Math.abs(mean)).toBeLessThan(0.003)
    expect(Math.abs(spread - 0.02)).toBeLessThan(0.003)
    expect(first).not.toEqual(second)
    expect(first.slice(0, 48)).not.toEqual(first.slice(48, 96))
  })

  it('are longer than their source, without repeated rows', async () => {
    const config = { ...parseLlamaConfig(smallLlama, 'config.json'), vocab: 90_000 }
    const words = randomCheckpoint(config, 'bf16').tensors.get('embed_tokens.weight')
    if (words === undefined) throw new Error('no words')
    const { data } = await inMemory(convertTensor('words', words, 'bf16'))
    expect(data.byteLength).toBe(90_000 * 48 * 2)
    const row = (at: number): string => data.subarray(at * 96, (at + 1) * 96).join()
    expect(new Set(Array.from({ length: 900 }, (_, i) => row(i * 100))).size).toBe(900)
  })
})
