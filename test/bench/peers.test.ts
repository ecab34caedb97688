import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { lengthsOf } from '../../src/bench/lengths.js'
import { llamaTorchCommand, timeLlamaTorch } from '../../src/bench/llama/peers.js'
import { fastestLlamaPeer } from '../../src/bench/llama/result.js'
import { type PeerBench, timeTorch, torchCommand } from '../../src/bench/peers.js'
import { fastestPeer, type PeerTimes, ratiosOf } from '../../src/bench/result.js'
import { parseLlamaConfig } from '../../src/models/llama/config.js'
import { smallLlama, smallMistral } from '../models/llama_fixtures.js'
import { planTimes, tinyConfig } from './results.js'

const bench: PeerBench = {
  config: tinyConfig,
  dtype: 'f16',
  shapes: [{ batch: 2, seq: 4 }],
  lengths: lengthsOf('full'),
  repeats: 3,
}

/** A stand-in for the script, written in JavaScript. */
const script = (code: string): readonly [string, ...string[]] => [process.execPath, '-e', code]

const print = (...lines: readonly unknown[]): string => lines.map((line) => `console.log(${JSON.stringify(line)});`).join('')

const timed = { way: 'graph', batch: 2, seq: 4, samples: [3, 1, 2] }
const failed = { way: 'nested', batch: 2, seq: 4, error: 'RuntimeError: no' }

describe('timeTorch', () => {
  it('reads times, failures and versions, and skips the output of libraries', async () => {
    const heard: PeerTimes[] = []
    const lines = [
      JSON.stringify({ gpu: 'G', torch: '2' }),
      'a warning',
      '{"half":',
      JSON.stringify(timed),
      JSON.stringify(failed),
    ]
    const peers = await timeTorch(bench, (times) => heard.push(times), script(print(...lines)))
    expect(peers).toMatchObject({ framework: 'torch', about: { gpu: 'G', torch: '2' }, problem: undefined })
    expect(peers.times).toMatchObject([
      { way: 'graph', batch: 2, seq: 4, milliseconds: { median: 2, best: 1, samples: 3 }, error: undefined },
      { way: 'nested', milliseconds: undefined, error: 'RuntimeError: no' },
    ])
    expect(heard).toEqual(peers.times)
    expect(fastestPeer(peers, { batch: 2, seq: 4 })?.way).toBe('graph')
    expect(fastestPeer(peers, { batch: 2, seq: 5 })).toBeUndefined()
    const plans = [planTimes('fused', [2, 4], 0.5, 0.1, undefined), planTimes('fused', [2, 5], 0.5, 0.1, undefined)]
    expect(ratiosOf(plans, peers)).toEqual([{ plan: 'fused', batch: 2, seq: 4, way: 'graph', ratio: 0.25 }])
  })

  it('sends configuration, lengths and counts', async () => {
    const echo =
      'let text = ""; process.stdin.on("data", (d) => { text += d }).on("end", () => console.log(JSON.stringify({ request: text })))'
    const { about } = await timeTorch(bench, undefined, script(echo))
    const request: unknown = JSON.parse(about.request ?? '')
    expect(request).toMatchObject({
      config: { hidden: 12, layers: 2, heads: 2, inner: 16, vocab: 50, positions: 8, tokenTypes: 2, activation: 'gelu' },
      dtype: 'f16',
      repeats: 3,
      shapes: [{ batch: 2, seq: 4, lengths: [4, 4] }],
    })
  })

  it('keeps partial results when the script fails, and reports the reason', async () => {
    const broken = `${print(JSON.stringify(timed))} console.error('Traceback\\nMemoryError: all of it'); process.exitCode = 1`
    const peers = await timeTorch(bench, undefined, script(broken))
    expect(peers.times).toHaveLength(1)
    expect(peers.problem).toContain('MemoryError: all of it')
  })

  it('reports a missing Python and a Python without PyTorch', async () => {
    expect(await timeTorch(bench, undefined, ['/nowhere/python3'])).toMatchObject({
      times: [],
      problem: expect.stringContaining('/nowhere/python3'),
    })
    const lacking = script(print(JSON.stringify({ problem: 'this Python has no PyTorch' })))
    expect(await timeTorch(bench, undefined, lacking)).toMatchObject({ times: [], problem: 'this Python has no PyTorch' })
  })

  it('ends with the signal', async () => {
    const cancel = new AbortController()
    const endless = script(`${print(JSON.stringify(timed))} setInterval(() => {}, 1000)`)
    const running = timeTorch({ ...bench, signal: cancel.signal }, () => cancel.abort(new Error('cancelled')), endless)
    await expect(running).rejects.toThrow('cancelled')
  })
})

describe('timeLlamaTorch', () => {
  const config = parseLlamaConfig(smallLlama, 'config.json')
  const shape = { batch: 1, seq: 16 }
  const asked = { config, dtype: 'f16', products: ['float', 'int8'], steps: [shape], prompts: [], window: 8, repeats: 3 } as const
  const step = { what: 'step', products: 'float', ...shape }

  it('reads times, floors and failures, and names the fastest run of the same matmuls', async () => {
    const lines = [
      { about: { gpu: 'G', torch: '2' } },
      { ...step, way: 'compile', samples: [3, 1, 2], floor: 0.5, peakBytes: 100 },
      { ...step, way: 'flex', samples: [1.5] },
      { ...step, way: 'max-autotune', error: 'RuntimeError: no' },
      { ...step, products: 'int8', way: 'compile', samples: [0.1] },
    ].map((line) => JSON.stringify(line))
    const heard: string[] = []
    const peers = await timeLlamaTorch(asked, (line) => heard.push(line), script(print('a warning', ...lines)))
    expect(peers).toMatchObject({ about: { gpu: 'G' }, problem: undefined })
    expect(peers.times.map(({ way, milliseconds, error }) => [way, milliseconds?.median, error])).toEqual([
      ['compile', 2, undefined],
      ['flex', 1.5, undefined],
      ['max-autotune', undefined, 'RuntimeError: no'],
      ['compile', 0.1, undefined],
    ])
    expect(heard[0]).toBe('torch compile, float, step 1x16: 2.000 ms')
    expect(fastestLlamaPeer(peers, { what: 'step', ...shape }, 'float')?.way).toBe('flex')
    expect(fastestLlamaPeer(peers, { what: 'prompt', ...shape }, 'float')).toBeUndefined()
    expect(fastestLlamaPeer(peers, { what: 'step', ...shape }, 'int8 weights')).toBeUndefined()
  })

  it('sends sizes, shapes and matmuls, and refuses those that the script does not support', async () => {
    const echo =
      'let text = ""; process.stdin.on("data", (d) => { text += d }).on("end", () => console.log(JSON.stringify({ about: { text } })))'
    const { about } = await timeLlamaTorch({ ...asked, ways: ['flex'] }, undefined, script(echo))
    expect(JSON.parse(about.text ?? '')).toEqual({
      config: {
        layers: 2,
        hidden: 48,
        heads: 6,
        kvHeads: 2,
        headDim: 8,
        inner: 40,
        vocab: 96,
        eps: 1e-6,
        tied: false,
        theta: 10_000,
      },
      ...{ dtype: 'f16', products: ['float', 'int8'], steps: [shape], prompts: [], window: 8, repeats: 3, ways: ['flex'] },
    })
    const windowed = { ...asked, config: parseLlamaConfig(smallMistral, 'config.json') }
    expect(await timeLlamaTorch(windowed, undefined, script(echo))).toMatchObject({
      times: [],
      problem: expect.stringMatching(/window/),
    })
    const broken = script('console.error("Traceback\\nImportError: nothing"); process.exitCode = 1')
    expect((await timeLlamaTorch(asked, undefined, broken)).problem).toContain('ImportError: nothing')
  })
})

it('the scripts travel with the sources', () => {
  for (const [, file] of [torchCommand(), llamaTorchCommand()]) expect(existsSync(file ?? '')).toBe(true)
})
