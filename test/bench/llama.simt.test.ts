/**
 * `heddle bench llama` on simt with a configuration made here, and the memory of LLaMA-like models, counted by the device: compared with the
 * configuration, and over many generations.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openTimedModel } from '../../src/bench/llama/model.js'
import type { BenchLlamaResult } from '../../src/bench/llama/result.js'
import { cacheBytes, weightBytes } from '../../src/bench/llama/work.js'
import { parseLlamaConfig } from '../../src/models/llama/config.js'
import { heddle } from '../cli/host.js'
import { smallLlama } from '../models/llama_fixtures.js'
import { withLlama } from '../models/llama_host.js'
import { openSimtKernels } from '../models/simt.js'

const json = { ...smallLlama, hidden_size: 64, num_attention_heads: 4, head_dim: 16, vocab_size: 160, tie_word_embeddings: true }
/** Large enough that only allocations count, and not the free memory of the machine. */
const limit = String(2 ** 28)

let model: string
let before: string | undefined

beforeAll(async () => {
  before = process.env.HEDDLE_SIMT_MEMORY
  process.env.HEDDLE_SIMT_MEMORY = limit
  model = await mkdtemp(join(tmpdir(), 'heddle-bench-'))
  await writeFile(join(model, 'config.json'), JSON.stringify(json))
})

afterAll(async () => {
  if (before === undefined) delete process.env.HEDDLE_SIMT_MEMORY
  else process.env.HEDDLE_SIMT_MEMORY = before
  await rm(model, { recursive: true })
})

const bench = (...argv: readonly string[]) =>
  heddle(['bench', 'llama', '--config', model, '--device', 'simt', '--dtype', 'f32', '--window', '8', ...argv])

describe('heddle bench llama', () => {
  it('--json prints one value: every plan and shape, floors, and the memory that the configuration implies', async () => {
    const shapes = ['--steps', '1x16,2x24', '--prompts', '2x20', '--chunk', '16', '--repeats', '5']
    const plans = ['--plans', 'unfused,best-llama-int8w']
    const file = join(model, 'times.json')
    const { exitCode, out, log } = await bench(...plans, ...shapes, '--save', file, '--json')
    expect({ exitCode, log }).toMatchObject({ exitCode: 0 })
    const result: BenchLlamaResult = JSON.parse(out)
    expect(result.plans.map(({ plan, products }) => [plan, products])).toEqual([
      ['unfused', 'float'],
      ['best-llama-int8w', 'int8 weights'],
    ])
    for (const { times, loading } of result.plans) {
      expect(times.map(({ what, batch, seq }) => [what, batch, seq])).toEqual([
        ['step', 1, 16],
        ['step', 2, 24],
        ['prompt', 2, 20],
      ])
      expect(loading.bytes).toBe(times[0]?.memory.weightBytes)
      for (const {
        what,
        batch,
        seq,
        milliseconds,
        floor,
        fraction,
        tokensPerSecond,
        samples,
        begun,
        launches,
        memory,
      } of times) {
        expect(samples).toHaveLength(5)
        // A run of steps for each window, those before the samples too; this device is done with each before the next.
        expect(begun).toEqual(what === 'step' ? { runs: 7, ahead: 0 } : undefined)
        expect(fraction).toBe((floor?.milliseconds ?? 0) / milliseconds.median)
        expect(tokensPerSecond).toBe((1000 * batch * (what === 'step' ? 1 : seq)) / milliseconds.median)
        // 2 layers of 7 matmuls, and the head of a step.
        expect(launches).toBeGreaterThan(14)
        // Alignment, words and counters are small here.
        expect(memory.ratio).toBeGreaterThanOrEqual(1)
        expect(memory.ratio).toBeLessThan(1.05)
        expect(memory.usedBytes).toBeGreaterThanOrEqual(memory.expectedBytes)
        expect(memory.usedBytes).toBeLessThan(1.05 * memory.expectedBytes)
      }
    }
    expect(log).toContain('unfused: timing steps of 2x24\n')
    expect(log).toMatch(/^best-llama-int8w, prompt 2x20: [0-9.]+ ms \([0-9.]+ to [0-9.]+\), [0-9.]+ tokens per second$/m)
    const kept: unknown = JSON.parse(await readFile(file, 'utf8'))
    expect(kept).toMatchObject({
      subject: `llama ${model}`,
      results: [{ plan: 'unfused', dims: { batch: 1, context: 16 } }, {}, {}, {}, {}, {}],
    })

    const compared = await bench(
      '--plans',
      'unfused',
      '--prompts',
      '2x20',
      '--repeats',
      '5',
      '--baseline',
      file,
      '--ratio',
      '1e9',
    )
    expect(compared).toMatchObject({ exitCode: 0 })
    expect(compared.out).toMatch(/same: unfused batch=2,tokens=20 takes/)
    expect(compared.out).toContain('Prompts are processed to the last token')
  })

  it.each([
    ['a shape and a folder', ['7b'], 'bench.config'],
    ['windows that are not whole replays', ['--window', '12'], 'bench.window'],
    ['contexts beyond the positions', ['--steps', '1x254'], 'bench.shape'],
    ['an unknown plan', ['--steps', '1x16', '--plans', 'none'], 'plan.unknown'],
    ['a way that the peer does not have', ['--peer-ways', 'slow'], 'cli.usage'],
    ['a checkpoint that is not there', ['--steps', '1x16', '--weights', 'checkpoint'], 'safetensors.read'],
  ])('refuses %s', async (_, argv, code) => {
    const { exitCode, out, log } = await bench(...argv)
    expect({ exitCode, out }).toEqual({ exitCode: 2, out: '' })
    expect(log).toContain(`error[${code}]: `)
  })
})

describe('memory, as the device counts it', () => {
  it.each(['unfused', 'best-llama'])('%s stores tied and stacked weights once', async (plan) => {
    const config = parseLlamaConfig(json, 'config.json')
    const kernels = await openSimtKernels()
    const free = kernels.device.info().memoryFreeBytes
    const { session } = await openTimedModel({ ...kernels, config, dtype: 'f32' }, plan)
    const used = free - kernels.device.info().memoryFreeBytes
    const expected = weightBytes(config, 'f32', 'float')
    expect(used).toBe(session.weightBytes)
    expect(used / expected).toBeGreaterThanOrEqual(1)
    expect(used / expected).toBeLessThan(1.01)
    // With the words twice it would not be.
    expect(weightBytes({ ...config, tied: false }, 'f32', 'float') / expected).toBeGreaterThan(1.1)
    session.release()
    expect(kernels.device.info().memoryFreeBytes).toBe(free)
    kernels.device.close()
  })

  it('does not grow over generations of any lengths', async () => {
    const kernels = await openSimtKernels()
    const { device } = kernels
    const free = device.info().memoryFreeBytes
    const used = (): number => free - device.info().memoryFreeBytes
    await withLlama('smollm', kernels, async (llama) => {
      const prompt = (length: number) => ({ inputIds: Array.from({ length }, (_, i) => (7 * i + length) % 500) })
      const generate = (lengths: readonly number[]) => llama.generate(lengths.map(prompt), { maxNewTokens: 1 })
      // Passes of one and of several lengths, over caches of one shape.
      const lengths = [2, 9, 17, 25, 30]
      await generate([30])
      const before = used()
      expect(before).toBeLessThan(1.05 * (llama.weightBytes + 2 ** 20))
      for (let round = 0; round < 100; round++) await generate([lengths[round % lengths.length] ?? 2])
      expect(used()).toBe(before)
      // Shapes change, but the number of cached ones does not grow.
      const shapes = [[2], [2, 3], [2, 3, 4], [2, 3, 4, 5], [2, 3, 4, 5, 6], [40]]
      for (const shape of shapes) await generate(shape)
      const most = used()
      for (const shape of [...shapes, ...shapes]) await generate(shape)
      expect(used()).toBe(most)
      // The count includes cached memory.
      const held = device.allocate(4096)
      expect(used()).toBe(most + 4096)
      held.release()
    })
    // Cache entries of shapes are released after runs that still use them.
    await new Promise((resolve) => setImmediate(resolve))
    expect(used()).toBe(0)
    device.close()
  })

  it('caches match their formula', async () => {
    const kernels = await openSimtKernels()
    const { device } = kernels
    await withLlama('smollm', { ...kernels, plan: 'best-llama' }, async (llama) => {
      const free = device.info().memoryFreeBytes
      const texts = Array.from({ length: 4 }, () => ({ inputIds: [1, 2, 3] }))
      await llama.generate(texts, { maxNewTokens: 1, capacity: 1024 })
      const used = free - device.info().memoryFreeBytes
      const caches = cacheBytes(llama.config, 'f32', { rows: 4, capacity: 1024 })
      expect(used).toBeGreaterThan(caches)
      expect(used).toBeLessThan(1.05 * caches)
    })
    device.close()
  })
})
