/** `heddle plan`: the numbers of its tables and its JSON, and its refusals. */
import { describe, expect, test } from 'vitest'
import type { PlanDiff, PlanReport } from '../../src/search/explain.js'
import { heddle } from './host.js'

const small = ['--shape', '1x32']

async function show(...argv: readonly string[]): Promise<PlanReport> {
  const { exitCode, out, log } = await heddle(['plan', 'show', ...argv, '--json'])
  expect({ exitCode, log }).toEqual({ exitCode: 0, log: '' })
  return JSON.parse(out)
}

describe('plan show', () => {
  test('as JSON has steps, totals and edges', async () => {
    const { steps, totals, edges } = await show('ft-v1', ...small)
    expect(totals).toMatchObject({ kernels: 6, matmuls: 8, launches: 14 })
    // 32 tokens of 768, 12 heads of 32 x 32 scores, f16; the length of the sequence is i32.
    const softmax = steps.find(({ kernel }) => kernel === 'scale_mask_softmax')
    expect(softmax).toMatchObject({ kind: 'row program', bytesRead: 2 * 12 * 32 * 32 + 4, bytesWritten: 2 * 12 * 32 * 32 })
    expect(steps.find(({ kernel }) => kernel === 'fc1')).toMatchObject({ kind: 'library matmul', flops: 2 * 32 * 768 * 3072 })
    // A softmax may be computed while a matmul loads it; every other pair that cannot be one kernel is reported with its nodes and the reason.
    const softened = edges.find(({ producer, consumer }) => producer === 'probabilities' && consumer === 'context')
    expect(softened).toMatchObject({ legal: true, reason: 'legal, the plan leaves it' })
    expect(edges.find(({ legal }) => !legal)?.reason).toMatch(/^nodes \w+ and \w+ cannot be one kernel: /)
    expect(totals.bytes).toBe(steps.reduce((sum, { bytesRead, bytesWritten }) => sum + bytesRead + bytesWritten, 0))
    expect(totals.microseconds).toBe(steps.reduce((sum, { microseconds }) => sum + microseconds, 0))
  })

  test('as text has the same', async () => {
    const { exitCode, out } = await heddle(['plan', 'show', 'ft-v1', '--shape', '32x128', '--config', 'bert-base'])
    expect(exitCode).toBe(0)
    expect(out).toContain('encoder_layer_gelu of bert-base, 32x128 f16, predicted for h200')
    expect(out).toMatch(/scale_mask_softmax\s+│ row program\s+│ scaled, masked, probabilities\s+│ 25\.2\s+│ -\s+│ 8\.97/)
    expect(out).toContain('6 kernels and 8 library matmuls: 14 launches, 341 MB moved, 59.6 GFLOP, 168.49 us')
    expect(out).toMatch(/ {2}\w+ -> \w+: nodes \w+ and \w+ cannot be one kernel: /)
    expect(out).toMatch(/ {2}fc1 -> fc1Bias: legal, the plan leaves it \(13\.02 us\)/)
  })

  test('states its sizes: the usual ones, or the given dimensions', async () => {
    const head = async (...argv: readonly string[]): Promise<string | undefined> =>
      (await heddle(['plan', 'show', 'ft-v1', ...argv])).out.split('\n')[0]
    expect(await head(...small)).toBe('encoder_layer_gelu of its usual size, 1x32 f16, predicted for h200')
    expect(await head('--dim', 'b=1,s=32')).toBe('encoder_layer_gelu, b=1 s=32 f16, predicted for h200')
  })

  test('prices another type, device and configuration', async () => {
    const { steps } = await show('unfused', ...small, '--dtype', 'f32', '--device', 'a100', '--config', 'bert-large')
    const norm = steps.find(({ nodes }) => nodes.includes('outputNorm'))
    const bytes = [4 * (32 * 1024 + 2 * 1024), 4 * 32 * 1024] as const
    expect(norm).toMatchObject({ bytesRead: bytes[0], bytesWritten: bytes[1] })
    // Few rows leave most of the device idle: they take longer than their bytes, and not twice as long.
    const least = 1e6 * (1.2e-6 + (bytes[0] + bytes[1]) / 2.039e12)
    expect((norm?.microseconds ?? 0) / least).toBeGreaterThanOrEqual(1)
    expect((norm?.microseconds ?? 0) / least).toBeLessThan(2)
  })

  test('a library matmul with an epilogue reads its bias and residual', async () => {
    const { steps, totals } = await show('best-encoder-library', '--graph', 'encoder_layer_relu', ...small)
    expect(totals).toMatchObject({ kernels: 3, matmuls: 4, launches: 7 })
    const product = steps.find(({ nodes }) => nodes.includes('fc2'))
    expect(product).toMatchObject({
      kind: 'library matmul',
      kernel: 'matmul_bias_residual',
      nodes: ['fc2', 'fc2Bias', 'outputResidual'],
      bytesRead: 2 * (32 * 3072 + 768 * 3072 + 768 + 32 * 768),
      bytesWritten: 2 * 32 * 768,
      flops: 2 * 32 * 768 * 3072,
    })
  })

  test('a graph without an entry in the plan stays unfused', async () => {
    const { totals } = await show('ft-v1', '--graph', 'embeddings', ...small)
    expect(totals).toMatchObject({ kernels: 5, matmuls: 0 })
  })
})

describe('plan diff', () => {
  test('as JSON has both reports and the steps that differ', async () => {
    const { exitCode, out } = await heddle(['plan', 'diff', 'unfused', 'ft-v1', ...small, '--json'])
    expect(exitCode).toBe(0)
    const { a, b, differences }: PlanDiff = JSON.parse(out)
    expect([a.totals.launches, b.totals.launches]).toEqual([26, 14])
    expect(differences).toHaveLength(5)
    const covered = differences.map(({ a: left, b: right }) => [left.length, right.map(({ kernel }) => kernel)])
    expect(covered).toContainEqual([3, ['scale_mask_softmax']])
    expect(covered).toContainEqual([6, ['qkv_bias_split_heads']])
  })

  test('as text compares totals; the searched plan is not worse', async () => {
    const { exitCode, out } = await heddle(['plan', 'diff', 'ft-v1', 'auto'])
    expect(exitCode).toBe(0)
    expect(out).toMatch(/launches\s+│ 14\s+│ 7\s+│ 0\.50/)
    const ratio = /predicted us\s+│ [\d.]+\s+│ [\d.]+\s+│ ([\d.]+)/.exec(out)?.[1]
    expect(Number(ratio)).toBeLessThanOrEqual(1)
  })

  test('of a plan with itself reports no difference', async () => {
    const { out } = await heddle(['plan', 'diff', 'ft-v1', 'ft-v1', ...small])
    expect(out).toContain('Both have the same groups.')
  })
})

describe('a graph of a project', () => {
  const mixer = ['--specs', 'test/projects/mixer/specs']

  test('is the one that the plan is for, and priced for the size it usually has', async () => {
    const { graph, steps, totals } = await show('folded', ...mixer)
    expect(graph).toBe('mixer')
    expect(totals).toMatchObject({ kernels: 3, matmuls: 2 })
    expect(steps.find(({ nodes }) => nodes.includes('wide'))?.flops).toBe(2 * 4 * 196 * 512 * 2048)
  })

  test('has its dimensions by the names it gave them, and the first ones in its order', async () => {
    const flops = async (...argv: string[]) =>
      (await show('folded', ...mixer, ...argv)).steps.find(({ nodes }) => nodes.includes('wide'))?.flops
    expect(await flops('--dim', 'w=8,z=16')).toBe(2 * 4 * 196 * 8 * 16)
    expect(await flops('--dim', 'w=8', '--dim', 'z=16,p=2')).toBe(2 * 4 * 2 * 8 * 16)
    expect(await flops('--shape', '1x2', '--dim', 'w=8')).toBe(2 * 2 * 8 * 2048)
  })

  test('without declared sizes needs every dimension', async () => {
    const { exitCode, log } = await heddle(['plan', 'show', 'folded', '--graph', 'pieces', ...mixer, '--dim', 'rows=4'])
    expect(exitCode).toBe(2)
    expect(log).toMatch(/^error\[graph\.dim\]: pieces has no usual size of cells, parts\nhint: .*--dim cells=512,parts=512/)
    const { steps } = await show('folded', '--graph', 'pieces', ...mixer, '--dim', 'rows=4,cells=8,parts=3')
    expect(steps).toMatchObject([{ nodes: ['cut', 'bent'], bytesRead: 2 * 4 * 8, bytesWritten: 2 * 4 * 8 * 3 }])
  })

  test.each([
    ['a dimension it does not have', ['--dim', 'b=8'], 'plan.dim', 'dimensions are n, p, w, z'],
    ['more extents than it has', ['--shape', '1x2x3x4x5'], 'plan.shape', '--dim'],
    ['the sizes of another model', ['--config', 'bert-base'], 'plan.config', '--dim'],
  ])('refuses %s', async (_, argv, code, hint) => {
    const { exitCode, log } = await heddle(['plan', 'show', 'folded', ...mixer, ...argv])
    expect(exitCode).toBe(2)
    expect(log).toMatch(new RegExp(`^error\\[${code}\\]: .+\nhint: .*${hint}`))
  })
})

test('plan list names every plan', async () => {
  const { exitCode, out } = await heddle(['plan', 'list'])
  expect(exitCode).toBe(0)
  expect(Math.max(...out.split('\n').map(({ length }) => length))).toBeLessThan(160)
  expect(out.split('\n').map((line) => line.trim().split(' ')[0])).toEqual(expect.arrayContaining(['unfused', 'ft-v1', 'auto']))
})

test.each([
  ['an unknown plan', ['plan', 'show', 'ft-v9'], 'plan.unknown', 'ft-v1'],
  ['an unknown plan of two', ['plan', 'diff', 'ft-v1', 'ft-v9'], 'plan.unknown', 'ft-v1'],
  ['an unknown graph', ['plan', 'show', 'ft-v1', '--graph', 'decoder'], 'plan.graph', 'nearest of \\d+: decoder_'],
  ['an unknown configuration', ['plan', 'show', 'ft-v1', '--config', 'gpt'], 'bench.config', 'bert-base'],
])('%s is refused with the available names', async (_, argv, code, hint) => {
  const { exitCode, out, log } = await heddle(argv)
  expect({ exitCode, out }).toEqual({ exitCode: 2, out: '' })
  expect(log).toMatch(new RegExp(`^error\\[${code}\\]: .+\nhint: .*${hint}.*\n$`))
})

test.each([
  [['plan', 'show', 'ft-v1', '--device', 'abacus']],
  [['plan', 'show', 'ft-v1', '--shape', '1x32,2x32']],
  [['plan', 'show', 'ft-v1', '--dim', 'h']],
  [['plan', 'show', 'ft-v1', '--dim', 'h=0']],
  [['plan', 'show']],
])('%j is a usage error', async (argv) => {
  const { exitCode, log } = await heddle(argv)
  expect(exitCode).toBe(2)
  expect(log).toMatch(/^error\[cli\.usage\]: /)
})
