/** `heddle run` and `heddle score` of LLaMA-like models: their lines, and their errors about options and cases that they cannot use. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { folderOf, goldenOf } from '../models/llama_host.js'
import { heddle, punctuationModel } from './host.js'

const model = folderOf('smollm')
let work: string
let cases: string
beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), 'heddle-llama-'))
  cases = join(work, 'cases.jsonl')
  const { text } = goldenOf('smollm')
  const lines = [{ input_ids: text.input_ids.slice(0, 20) }, { input_ids: text.input_ids.slice(5, 9) }]
  await writeFile(cases, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
})
afterAll(() => rm(work, { recursive: true }))

const simt = ['--device', 'simt', '--cases']

describe('heddle run', () => {
  it('prints ids and the reason of each end, and reports the inverse frequencies it uses', async () => {
    const { exitCode, out, log } = await heddle(['run', model, ...simt, cases, '--max-new-tokens', '3', '--chunk', '8'])
    expect(exitCode).toBe(0)
    const lines = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines).toMatchObject([{ finish: 'limit' }, { finish: 'limit' }])
    expect(lines.map(({ ids }) => ids.length)).toEqual([3, 3])
    expect(log).toContain('inverse frequencies are rounded to bf16')
  })

  it('prints hypotheses of beams, and computes in one shape on request', async () => {
    const argv = ['run', model, ...simt, cases, '--max-new-tokens', '2', '--beams', '2', '--return', '2']
    const { exitCode, out } = await heddle([...argv, '--invariant', '2', '--capacity', '32'])
    expect(exitCode).toBe(0)
    const lines = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines.map(({ beams }) => [beams.length, beams[0].ids])).toEqual(lines.map(({ ids }) => [2, ids]))
  })

  it('refuses unsupported models, and options of these models for others', async () => {
    const refused = async (argv: readonly string[], code: string, message: RegExp) => {
      const { exitCode, out, log } = await heddle(argv)
      expect({ exitCode, out }).toEqual({ exitCode: 2, out: '' })
      expect(log).toContain(`error[${code}]: `)
      expect(log).toMatch(message)
    }
    await refused(['run', model, ...simt, cases, '--beams', '65'], 'generate.beams', /beams is 65/)
    await refused(['run', model, ...simt, cases, '--max-new-tokens', '1005'], 'run.capacity', /20 tokens and may get 1005 more/)
    await refused(['run', punctuationModel, '--text', 'x', '--chunk', '3'], 'run.option', /--chunk applies to LLaMA-like models/)
    await refused(['run', punctuationModel, '--text', 'x', '--rotation', 'float32'], 'run.option', /--rotation/)
    await refused(['score', punctuationModel, '--cases', cases], 'score.model', /not a model that continues text/)
    await refused(['score', model, ...simt, cases, '--places', '4'], 'run.place', /case 1 has 4 tokens, and no place 4/)
  })
})

describe('heddle calibrate', () => {
  it('writes the largest magnitudes of channels, which other verbs use for smoothing', async () => {
    const out = join(work, 'channels.json')
    const found = await heddle(['calibrate', model, ...simt, cases, '--out', out])
    expect(found).toMatchObject({ exitCode: 0, log: expect.stringContaining('written: ') })
    expect(found.out).toContain('layer0/layer0.gated')
    const score = (...more: readonly string[]) => heddle(['score', model, ...simt, cases, '--plan', 'best-llama-w8a8', ...more])
    const [plain, smooth] = [await score(), await score('--scales', out, '--smooth', '0.4')]
    expect([plain.exitCode, smooth.exitCode]).toEqual([0, 0])
    expect(smooth.out).not.toBe(plain.out)
    const refused = async (argv: readonly string[], message: RegExp) => {
      const { exitCode, log } = await heddle(argv)
      expect(exitCode).toBe(2)
      expect(log).toMatch(message)
    }
    await refused(['score', model, ...simt, cases, '--smooth', '0.4'], /run.option.*--smooth has no channel maxima/)
    await refused(['score', model, ...simt, cases, '--plan', 'best-llama-int8w', '--scales', out], /smooth.plan/)
    await refused(['score', model, ...simt, cases, '--scales', cases], /channels.json/)
    await refused(['calibrate', model, ...simt, cases, '--out', out, '--method', 'max'], /calibrate.option.*--method/)
  })
})

describe('heddle score', () => {
  it('prints losses that are those of the logits', async () => {
    const argv = ['score', model, ...simt, cases, '--rotation', 'float32']
    const { exitCode, out } = await heddle([...argv, '--json', '--places', '0,1,2'])
    expect(exitCode).toBe(0)
    const [, second] = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    const ids = goldenOf('smollm').text.input_ids.slice(5, 9)
    const losses = (second.logits as { logits: number[] }[]).map(({ logits }, place) => {
      const top = Math.max(...logits)
      const total = logits.reduce((sum, value) => sum + Math.exp(value - top), 0)
      return Math.log(total) + top - (logits[ids[place + 1] ?? 0] ?? 0)
    })
    expect(second.tokens).toBe(3)
    expect(second.mean_nll).toBeCloseTo(losses.reduce((sum, loss) => sum + loss, 0) / 3, 4)
    for (const [place, loss] of losses.entries()) expect(second.nll[place]).toBeCloseTo(loss, 4)
    expect((await heddle(argv)).out).toMatch(/^case 0: \d+\.\d{5} over 19 tokens\ncase 1: .*\nmean negative log-likelihood /)
  })
})
