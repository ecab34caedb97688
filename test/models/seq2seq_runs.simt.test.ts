/**
 * Runs of the encoder-decoder pipeline on simt: bad input, aborts, streams left early, lack of memory, and that the next run is right after each of
 * them.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { GenerateOptions, Seq2seq } from '../../src/models/seq2seq/seq2seq_pipeline.js'
import type { NativeDevice } from '../../src/runtime/native.js'
import { tinyPegasus, withSeq2seq } from './seq2seq_fixtures.js'
import { openSimtKernels } from './simt.js'
import { smallDevice } from './small_device.js'

let opened: Awaited<ReturnType<typeof openSimtKernels>>
/** One model for all tests that need no device of their own. */
let model: Seq2seq
/** Called while a program of that model runs on the device. */
let onRun = (): void => {}
let expected: Awaited<ReturnType<Seq2seq['generate']>>
let finish = (): void => {}
let used: Promise<void>

const cases = [[3, 1, 4, 1, 5], [9], [2, 6]].map((inputIds) => ({ inputIds }))
/** No text ends before its limit, so there is time to stop it. */
const json = { ...tinyPegasus, eos_token_id: [] }
const options = { maxNewTokens: 30, batch: 2 } satisfies GenerateOptions

const watchedDevice = (): NativeDevice => ({
  ...opened.device,
  program(steps) {
    const program = opened.device.program(steps)
    const run: typeof program.run = (...given) => {
      const running = program.run(...given)
      onRun()
      return running
    }
    return { ...program, run }
  },
})

beforeAll(async () => {
  opened = await openSimtKernels()
  await new Promise<void>((ready, fail) => {
    used = withSeq2seq({ ...opened, device: watchedDevice() }, json, { plan: 'ft-v2.1' }, async (loaded) => {
      model = loaded
      ready()
      await new Promise<void>((resolve) => {
        finish = resolve
      })
    })
    used.catch(fail)
  })
  expected = await model.generate(cases, options)
})

afterAll(async () => {
  finish()
  await used
})

const expectRight = async (): Promise<void> => expect(await model.generate(cases, options)).toEqual(expected)

describe('refusals of generate', () => {
  it.each<[string, readonly number[][], GenerateOptions, string]>([
    ['no cases', [], {}, 'run.batch'],
    ['an empty case', [[1], []], {}, 'run.sequence'],
    ['a case longer than the positions', [Array.from({ length: 41 }, () => 1)], {}, 'run.sequence'],
    ['a token id beyond the vocabulary', [[1, 50]], {}, 'run.token'],
    ['a batch of zero', [[1]], { batch: 0 }, 'run.batch'],
    ['more beams than half of the vocabulary', [[1]], { beams: 26 }, 'generate.beams'],
    ['more beams than kernels are compiled for', [[1]], { beams: 65 }, 'generate.beams'],
    ['a temperature below 0', [[1]], { temperature: -1 }, 'generate.temperature'],
    ['a top-p beyond 1', [[1]], { topP: 1.01 }, 'generate.topP'],
    ['a seed that is not an integer', [[1]], { seed: 1.5 }, 'generate.seed'],
    ['no token', [[1]], { maxNewTokens: 0 }, 'generate.maxNewTokens'],
    ['more tokens than positions', [[1]], { maxNewTokens: 41 }, 'generate.maxNewTokens'],
  ])('%s', async (_, sequences, given, code) => {
    const sources = sequences.map((inputIds) => ({ inputIds }))
    await expect(model.generate(sources, { maxNewTokens: 5, ...given })).rejects.toMatchObject({ code, exitCode: 2 })
    const reading = model.stream(sources, { maxNewTokens: 5, ...given }).next()
    await expect(reading).rejects.toMatchObject({ code, exitCode: 2 })
  })

  it('a model without an end id if there is no limit', async () => {
    await expect(model.generate(cases)).rejects.toMatchObject({ code: 'generate.end', exitCode: 2 })
  })

  it('and nothing of it stays', expectRight)
})

describe('an aborted run', () => {
  const reason = new Error('enough')

  it('rejects with the reason before it begins, between batches and within one, and the next is right', async () => {
    await expect(model.generate(cases, { ...options, signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    const between = new AbortController()
    const progress = () => between.abort(reason)
    await expect(model.generate(cases, { ...options, signal: between.signal, progress })).rejects.toBe(reason)
    for (const at of [1, 2, 3]) {
      const within = new AbortController()
      let runs = 0
      onRun = () => {
        runs++
        if (runs === at) within.abort(reason)
      }
      await expect(model.generate(cases, { ...options, signal: within.signal })).rejects.toBe(reason)
      // The sources are read in the first run, and eight steps made in each of the others.
      expect(runs).toBe(at)
      onRun = () => {}
      await expectRight()
    }
  })

  it('waits for earlier runs, and stops a stream between its tokens', async () => {
    const controller = new AbortController()
    const seen: number[] = []
    const reading = (async () => {
      for await (const { ids } of model.stream(cases, { ...options, signal: controller.signal })) {
        seen.push(...ids)
        controller.abort(reason)
      }
    })()
    const next = model.generate(cases, options)
    await expect(reading).rejects.toBe(reason)
    expect(seen.length).toBeGreaterThan(0)
    expect(await next).toEqual(expected)
  })
})

describe('a stream', () => {
  const joined = async (given: GenerateOptions): Promise<number[][]> => {
    const texts: number[][] = cases.map(() => [])
    for await (const { index, ids } of model.stream(cases, given)) texts[index]?.push(...ids)
    return texts
  }

  it('has the tokens generate has, in parts', async () => {
    expect(await joined(options)).toEqual(expected.map(({ ids }) => ids))
    const parts: number[] = []
    for await (const { index } of model.stream(cases, options)) parts.push(index)
    expect(parts).toEqual([0, 1, 0, 1, 0, 1, 0, 1, 2, 2, 2, 2])
    for (const given of [
      { ...options, topK: 5, seed: 4 },
      { ...options, beams: 3 },
    ]) {
      const whole = await model.generate(cases, given)
      expect(await joined(given)).toEqual(whole.map(({ ids }) => ids))
      expect(await joined({ ...given, maxNewTokens: 29 })).not.toEqual(whole.map(({ ids }) => ids))
    }
  })

  it('may be left early', async () => {
    for await (const { ids } of model.stream(cases, options)) {
      expect(ids.length).toBeGreaterThan(0)
      break
    }
    await expectRight()
  })

  it('ends with the end id of a text, which is not emitted', async () => {
    await withSeq2seq(opened, { ...json, eos_token_id: Array.from({ length: 30 }, (_, i) => i) }, {}, async (ending) => {
      const whole = await ending.generate(cases, options)
      expect(Math.min(...whole.map(({ ids }) => ids.length))).toBeLessThan(30)
      const texts: number[][] = cases.map(() => [])
      for await (const { index, ids } of ending.stream(cases, options)) texts[index]?.push(...ids)
      expect(texts).toEqual(whole.map(({ ids }) => ids))
    })
  })
})

const settle = () => new Promise(setImmediate)

describe('memory', () => {
  it('shortage is a typed error with the required and the free size, and a smaller run works', async () => {
    let bound = Number.POSITIVE_INFINITY
    const { device, log } = smallDevice(opened.device, () => bound)
    await withSeq2seq({ ...opened, device }, json, { plan: 'ft-v2.1' }, async (small) => {
      const weights = log.live
      const [alone] = await small.generate(cases.slice(0, 1), options)
      bound = log.live + 1000
      const many = Array.from({ length: 64 }, () => ({ inputIds: [3, 1, 4] }))
      await expect(small.generate(many, { ...options, batch: 64 })).rejects.toMatchObject({
        code: 'states.memory',
        exitCode: 3,
        message: expect.stringMatching(/^states need \d+ bytes of device memory, \d+ are free$/),
      })
      await settle()
      expect(log.live).toBe(weights)
      expect(await small.generate(cases.slice(0, 1), options)).toEqual([alone])
    })
    await settle()
    expect(log).toEqual({ live: 0, buffers: 0 })
  })

  it('of cached shapes is released for a run that needs it', async () => {
    let bound = Number.POSITIVE_INFINITY
    const { device, log } = smallDevice(opened.device, () => bound)
    await withSeq2seq({ ...opened, device }, json, { plan: 'ft-v2.1' }, async (small) => {
      const run = (maxNewTokens: number) => small.generate(cases, { batch: 3, maxNewTokens })
      const first = await run(8)
      await run(16)
      // Neither fits together with both others: there is room only without them.
      bound = log.live + 100
      expect((await run(24)).map(({ ids }) => ids.slice(0, 8))).toEqual(first.map(({ ids }) => ids))
      expect(await run(8)).toEqual(first)
    })
  })

  it('of four shapes is cached, and programs of one form are shared', async () => {
    const { device, log } = smallDevice(opened.device, () => Number.POSITIVE_INFINITY)
    await withSeq2seq({ ...opened, device }, json, { plan: 'ft-v2.1' }, async (small) => {
      const weights = log.buffers
      const run = async (given: GenerateOptions, limit = 8) => {
        const results = await small.generate(cases, { batch: 3, maxNewTokens: limit, ...given })
        await settle()
        return { results, held: log.buffers - weights }
      }
      const first = await run({})
      // States, the encoder's arena and the steps'.
      expect(first.held).toBe(3)
      expect((await run({}, 5)).held).toBe(3)
      const drawn = await run({ seed: 1 })
      const other = await run({ seed: 2, topP: 0.9, temperature: 0.5 })
      expect(other.results).not.toEqual(drawn.results)
      expect([drawn.held, other.held]).toEqual([6, 6])
      expect(await run({ seed: 1 })).toEqual(drawn)
      for (const limit of [16, 24, 32, 40]) expect((await run({}, limit)).held).toBeLessThanOrEqual(12)
      expect((await run({})).results).toEqual(first.results)
    })
  })
})
