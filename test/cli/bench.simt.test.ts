/** `heddle bench encoder` on simt: the contents of each stream, the report, and refusals. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { BenchEncoderResult } from '../../src/bench/result.js'
import { heddle, punctuationModel } from './host.js'

let work: string

beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), 'heddle-bench-'))
  const { exitCode, log } = await heddle(['build', '--target', 'simt', '--for', punctuationModel])
  expect({ exitCode, log }).toMatchObject({ exitCode: 0 })
})

afterAll(() => rm(work, { recursive: true }))

const encoder = (...argv: readonly string[]) =>
  heddle(['bench', 'encoder', '--config', punctuationModel, '--device', 'simt', '--dtype', 'f32', '--repeats', '2', ...argv])

test('--json prints one value with every plan and shape on stdout, and progress on stderr', async () => {
  const plans = ['--plans', 'unfused,ft-v1', '--shapes', '1x3,2x8', '--lengths', 'half']
  const { exitCode, out, log } = await encoder(...plans, '--json')
  expect(exitCode).toBe(0)
  const result: BenchEncoderResult = JSON.parse(out)
  expect(result.device.kind).toBe('simt')
  expect(result.results.map(({ plan, batch, seq }) => [plan, batch, seq])).toEqual([
    ['unfused', 1, 3],
    ['ft-v1', 1, 3],
    ['unfused', 2, 8],
    ['ft-v1', 2, 8],
  ])
  for (const times of result.results) {
    expect(times.milliseconds.samples).toBe(2)
    expect(times.milliseconds.median).toBeGreaterThan(0)
    expect(times.workload.flops).toBeGreaterThan(0)
    expect(times.memory.peakBytes).toBe(times.memory.arenaBytes + times.memory.weightBytes)
    expect(times.floor?.milliseconds).toBeGreaterThan(0)
    expect(times.fraction).toBe((times.floor?.milliseconds ?? 0) / times.milliseconds.median)
  }
  expect(log).toContain('building ft-v1 2x8 (4 of 4)\n')
  expect(log).toContain('timing 2x8, round 1 of 2\n')
  expect(log).toMatch(/^unfused 1x3: [0-9.]+ ms \([0-9.]+ to [0-9.]+\)$/m)
})

test('--report writes a page with the measurements, and names it', async () => {
  const file = join(work, 'report.html')
  const { exitCode, out, log } = await encoder('--plans', 'ft-v1', '--shapes', '1x4', '--report', file)
  expect(exitCode).toBe(0)
  expect(out).toMatch(/Floor: .*B\/s or .*FLOP\/s of f32 \(measured\)/)
  expect(log).toContain(`report: ${file}\n`)
  const html = await readFile(file, 'utf8')
  expect(html).toContain('--plans ft-v1 --shapes 1x4 --lengths full --dtype f32 --device simt --repeats 2')
  expect(html).toContain('bias_residual_layer_norm')
})

describe('refusals', () => {
  test.each([
    ['a report in a folder that does not exist', ['--shapes', '1x2', '--report', '/nowhere/at/all.html'], 'bench.report'],
    ['an unknown configuration', ['--config', 'bert-none'], 'bench.config'],
    ['an unknown plan', ['--plans', 'none'], 'plan.unknown'],
    ['lengths that cannot be read', ['--lengths', '/nowhere/lengths'], 'bench.lengths'],
    ['shapes in two forms', ['--shapes', '1x2', '--length', '4'], 'bench.shape'],
    ['other heads of a model folder', ['--heads', '3'], 'bench.config'],
    ['a tuning file that is not there', ['--algorithms', '/nowhere/tuning.json'], 'tuning.missing'],
    ['a tuning file without algorithms of the device', ['--algorithms', 'specs/tuning.json'], 'bench.algorithms'],
    ['an unknown peer', ['--peer', 'abacus'], 'cli.usage'],
  ])('%s', async (_, argv, code) => {
    const { exitCode, out, log } = await encoder(...argv)
    expect({ exitCode, out }).toEqual({ exitCode: 2, out: '' })
    expect(log).toContain(`error[${code}]: `)
  })
})
