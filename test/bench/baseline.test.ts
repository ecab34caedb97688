/** Comparison of new times with saved ones: significant differences, and refused baselines. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { summarise } from '../../src/bench/statistics.js'
import { type Baseline, baselineFile, chanceOf, compare, readBaseline } from '../../src/bench/target/baseline.js'
import type { TargetTimes } from '../../src/bench/target/measure.js'
import { random, uniform } from '../../src/verify/random.js'

const drawn = (name: string, centre: number, spread: number, count = 30): number[] => {
  const next = random(name)
  return Array.from({ length: count }, () => centre + uniform(next, -spread, spread))
}

const times = (samples: readonly number[], dims: Record<string, number> = { m: 4 }): TargetTimes => ({
  plan: 'p',
  dims,
  samples,
  milliseconds: summarise(samples),
  launches: 1,
  captured: false,
  rotation: { passes: 1, bytes: 1, evicts: undefined },
  workload: { bytes: 1, flops: 0 },
  floor: undefined,
  fraction: undefined,
  zeros: [],
  profile: [],
})

const kept = (samples: readonly number[]): Baseline => ({
  version: 1,
  subject: 'layer_norm__f32',
  device: 'simt some CPU',
  dtype: 'f32',
  results: [{ plan: 'p', dims: { m: 4 }, samples: [...samples] }],
})

const verdict = (now: readonly number[], before: readonly number[], limit = 1.05) =>
  compare(kept(before), [times(now)], limit).map((each) => each.verdict)

describe('a difference', () => {
  it('counts if it exceeds the ratio and is not random', () => {
    expect(verdict(drawn('now', 1.2, 0.05), drawn('before', 1, 0.05))).toEqual(['slower'])
    expect(verdict(drawn('now', 0.8, 0.05), drawn('before', 1, 0.05))).toEqual(['faster'])
    expect(verdict(drawn('now', 1, 0.05), drawn('before', 1, 0.05))).toEqual(['same'])
  })

  it('is ignored below the ratio, however stable', () => {
    expect(verdict(drawn('now', 1.04, 0.001), drawn('before', 1, 0.001))).toEqual(['same'])
    expect(verdict(drawn('now', 1.04, 0.001), drawn('before', 1, 0.001), 1.02)).toEqual(['slower'])
  })

  it('is ignored if times vary as much, or are too few for a test', () => {
    expect(verdict(drawn('now', 1.15, 1, 8), drawn('before', 1, 1, 8))).toEqual(['same'])
    expect(verdict([2, 2], [1, 1])).toEqual(['same'])
  })

  it('applies only to the same plan and size', () => {
    expect(compare(kept([1, 1]), [times([2, 2], { m: 5 })], 1.05)).toEqual([])
  })
})

it('the chance of ranks is near that of tables: 0.05 at a rank sum of 78 of ten of twenty', () => {
  // Two samples of ten whose smaller rank sum is 79: the two-sided 5 % point is 78.
  const first = [1, 2, 3, 4, 5, 6, 9, 14, 17, 18]
  const second = Array.from({ length: 20 }, (_, i) => i + 1).filter((rank) => !first.includes(rank))
  expect(first.reduce((sum, rank) => sum + rank, 0)).toBe(79)
  expect(chanceOf(first, second)).toBeGreaterThan(0.045)
  expect(chanceOf(first, second)).toBeLessThan(0.056)
  expect(chanceOf(first, second)).toBeCloseTo(chanceOf(second, first), 12)
})

describe('a file', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'heddle-baseline-'))
  })
  afterAll(() => rm(folder, { recursive: true }))
  const about = { subject: 'layer_norm__f32', device: 'simt some CPU', dtype: 'f32' } as const

  it('is read back unchanged', async () => {
    const path = join(folder, 'times.json')
    await (await baselineFile(path))(kept([1, 2, 3, 4, 5]))
    expect(await readBaseline(path, about)).toEqual(kept([1, 2, 3, 4, 5]))
  })

  test.each([
    ['of another kernel', JSON.stringify({ ...kept([1]), subject: 'softmax__f32' }), 'softmax__f32, expected layer_norm__f32'],
    ['of another device', JSON.stringify({ ...kept([1]), device: 'cuda some GPU' }), 'cuda some GPU, expected simt some CPU'],
    ['of another type', JSON.stringify({ ...kept([1]), dtype: 'f16' }), 'f16, expected f32'],
    ['that is empty', '', 'cannot be read'],
    ['that is something else', '{"version":2}', 'is not a baseline'],
    ['without times', JSON.stringify(kept([])), 'is not a baseline'],
    ['with too few times', JSON.stringify(kept([1, 2, 3, 4])), 'fewer than 5 times'],
    ['with times below nothing', JSON.stringify(kept([-1])), 'is not a baseline'],
  ])('%s is refused', async (_, text, message) => {
    const path = join(folder, 'wrong.json')
    await writeFile(path, text)
    await expect(readBaseline(path, about)).rejects.toMatchObject({
      code: 'bench.baseline',
      message: expect.stringContaining(message),
    })
  })

  it('that is missing is refused, and one that cannot be written', async () => {
    await expect(readBaseline(join(folder, 'none.json'), about)).rejects.toMatchObject({ code: 'bench.baseline' })
    await expect(baselineFile(join(folder, 'no/such/file.json'))).rejects.toMatchObject({ code: 'bench.save' })
  })
})
