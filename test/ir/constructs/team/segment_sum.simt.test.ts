/** Segment sums: a construct in one file, tested in one: reading, refusals, evaluation, schedule, price, and every team on simt. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { costDevice } from '../../../../src/cost/device.js'
import { kernelParts } from '../../../../src/cost/kernel.js'
import { applyPlan } from '../../../../src/fuse/apply.js'
import { checkDerived } from '../../../../src/fuse/check/derived.js'
import { call, i32 } from '../../../../src/ir/build.js'
import { evaluateKernel } from '../../../../src/ir/evaluate.js'
import type { Kernel } from '../../../../src/ir/kernel.js'
import { printKernel } from '../../../../src/ir/print.js'
import { isTemplate } from '../../../../src/ir/template.js'
import { verifyKernel } from '../../../../src/ir/verify.js'
import { graph, op, segmentSum, tensor } from '../../../../src/lang/index.js'
import { evaluateMapped } from '../../../../src/loop/evaluate_mapped.js'
import { mapKernel } from '../../../../src/schedule/map.js'
import { notesOf } from '../../../../src/schedule/notes/notes.js'
import { keepsOrder } from '../../../../src/schedule/tuning/candidates.js'
import { check, type Host, launch, openKernels, type Subject } from '../../../emit/host.js'
import { read, refuses } from '../../../frontend/refuse.js'

const facts = "{ k1: 'k+1', offsets: { from: 0, to: 'n', order: 'ascending' } }"
const source = `import { foldRow, op, row, segmentSum, sum, tensor, toInt } from 'heddle'
export const runs = op('runs', {
  dims: ['m', 'n', 'k', 'k1'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n'), offsets: tensor('i32', 'k1') },
  outputs: { y: tensor('T', 'm k') },
  facts: ${facts},
  body: ({ x, offsets }, { n }) => (m, j) => ({ y: segmentSum(n, j, offsets, (c) => x(m, c)) }),
})
export const counts = op('counts', {
  dims: ['m', 'n', 'k', 'k1'],
  inputs: { x: tensor('i32', 'm n'), offsets: tensor('i32', 'm k1') },
  outputs: { y: tensor('i32', 'm k') },
  facts: ${facts},
  body: ({ x, offsets }, { n }) => (m, j) => {
    const total = segmentSum(n, j, (s) => offsets(m, s), (c) => x(m, c) + toInt(1))
    return { y: total * 2 }
  },
})
export const columns = op('columns', {
  dims: ['m', 'n', 'k', 'k1'],
  types: { T: ['f32', 'f16'] },
  inputs: { x: tensor('T', 'n m'), ids: tensor('i32', 'n'), offsets: tensor('i32', 'k1') },
  outputs: { y: tensor('T', 'k m') },
  facts: { ids: { index: 'n' }, ${facts.slice(2)},
  body: ({ x, ids, offsets }, { n }) => (j, m) => ({ y: segmentSum(n, j, offsets, (c) => x(ids(c), m)) }),
})
export const shares = op('shares', {
  dims: ['m', 'n', 'k', 'k1'],
  inputs: { x: tensor('f32', 'm n'), offsets: tensor('i32', 'k1') },
  outputs: { y: tensor('f32', 'm k n') },
  facts: ${facts},
  body: ({ x, offsets }, { n }) => (m, j) => {
    const total = segmentSum(n, j, offsets, (c) => x(m, c))
    const all = sum(n, (c) => x(m, c))
    return { y: row(n, (c) => x(m, c) * total + all) }
  },
})
export const doubled = op('doubled', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n') },
  outputs: { y: tensor('f32', 'm n') },
  body: ({ x }) => (m, c) => ({ y: x(m, c) * 2 }),
})
export const totals = op('totals', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n') },
  outputs: { y: tensor('f32', 'm') },
  body: ({ x }, { n }) => (m) => ({ y: sum(n, (c) => x(m, c)) }),
})
export const carried = op('carried', {
  dims: ['m', 'n', 'k', 'k1'],
  inputs: { x: tensor('f32', 'm n'), offsets: tensor('i32', 'k1') },
  outputs: { y: tensor('f32', 'm k n') },
  facts: ${facts},
  body: ({ x, offsets }, { n }) => (m, j) => {
    const total = segmentSum(n, j, offsets, (c) => x(m, c))
    const f = foldRow(n, { h: 0 }, ({ h }, c) => ({ h: h * 0.5 + x(m, c) }))
    return { y: row(n, (c) => f.h(c) + total) }
  },
})`

const { kernels, diagnostics } = read(source)
const kernelNamed = (name: string): Kernel => {
  const kernel = kernels.find((each) => each.name === name)
  if (kernel === undefined) throw new Error(`no kernel ${name}`)
  return kernel
}

type Dims = Readonly<Record<string, number>>

/** Boundaries `at` of `k` segments of a row of `n`. */
const boundaries: Readonly<Record<string, (at: number, n: number, k: number) => number>> = {
  even: (at, n, k) => Math.floor((at * n) / k),
  'empty segments': (at, n, k) => Math.floor((((at + (at % 2)) / 2) * 2 * n) / (k + 1)),
  'one segment with everything': (at, n, k) => (at <= k / 2 ? 0 : n),
  'a part of the row': (at, n, k) => Math.min(n, 1 + Math.floor((at * Math.max(0, n - 2)) / k)),
  'unequal segments': (at, n, k) => Math.floor(n * (at / k) ** 3),
}

const subject = (name: string, k: number, bounds: keyof typeof boundaries): Subject => ({
  kernel: kernelNamed(name),
  class: 'reduction',
  extents: () => ({ k, k1: k + 1 }),
  inputs: {
    offsets: (i: number, { n = 1 }: Dims) => boundaries[bounds]?.(i % (k + 1), n, k) ?? 0,
    ids: (i: number, { n = 1 }: Dims) => (i * 7) % n,
  },
})

it('is one file of the compiler and its line in the index', () => {
  const src = fileURLToPath(new URL('../../../../src', import.meta.url))
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
  expect(files.length).toBeGreaterThan(500)
  const knowing = files.filter((file) => /segmentSum|segment_sum/.test(readFileSync(join(src, file), 'utf8')))
  expect(knowing.sort()).toEqual(['ir/constructs/team/index.ts', 'ir/constructs/team/segment_sum.ts'])
})

describe('the body of an op', () => {
  it('is read as a scalar of each row, from integers between two boundaries', () => {
    expect(diagnostics).toEqual([])
    expect(printKernel(kernelNamed('counts'))).toContain(`for m1 < m, j < k
  let from0: i32 = offsets[m1, j]
  let to0: i32 = offsets[m1, j + 1]
  let total: i32 = segmentSum(c < to0 - from0: x[m1, from0 + c] + 1) of n
  y[m1, j] = total * 2`)
  })

  it('runs as JavaScript', () => {
    const [offsets, x] = [
      [0, 2, 2, 5],
      [1, 2, 3, 4, 5],
    ]
    const sums = [0, 1, 2].map((j) =>
      segmentSum(
        5,
        j,
        (s) => offsets[s] ?? Number.NaN,
        (c) => x[c] ?? Number.NaN,
      ),
    )
    expect(sums).toEqual([3, 0, 12])
    for (const [from, to] of [
      [3, 2],
      [-1, 2],
      [2, 6],
    ] as const)
      expect(() =>
        segmentSum(
          5,
          0,
          (s) => [from, to][s] ?? Number.NaN,
          () => 1,
        ),
      ).toThrow(`a segment from ${from} to ${to} is none of a row of 5 elements`)
  })

  const op = (result: string): string => `import { op, segmentSum, sum, tensor } from 'heddle'
export const t = op('t', {
  dims: ['m', 'n', 'k', 'e'],
  inputs: { x: tensor('f32', 'm n'), f: tensor('f32', 'e'), o: tensor('i32', 'e') },
  outputs: { y: tensor('f32', 'm k') },
  body: ({ x, f, o }, { n, k }) => (m, j) => ({ y: f(0) + o(0) + x(m, 0) + k + ${result} }),
})
export const used = sum
`
  it('is refused inside a reduction', () =>
    refuses(op('sum(k, (i) => «segmentSum(n, i, o, (c) => x(m, c))»)'), {
      code: 'row',
      message: 'a segment sum cannot be made inside an element or a branch',
      hint: 'make it a const at row level, before the row that uses it',
    }))

  it('is refused without a segment', () =>
    refuses(op('«segmentSum(n, o, (c) => x(m, c))»'), {
      code: 'arity',
      message: 'segmentSum takes 4 arguments, 3 given',
      hint: 'write segmentSum(n, j, (s) => offsets(s), (c) => x(m, c))',
    }))

  it('is refused for fractional boundaries', () =>
    refuses(op('segmentSum(n, j, «f», (c) => x(m, c))'), {
      code: 'index',
      message: 'an element of f: f is a float',
      hint: 'indices and lengths are integers: use idiv, toInt or an integer tensor',
    }))

  it('is refused for conditions', () =>
    refuses(op('segmentSum(n, j, o, «(c) => x(m, c) > 0»)'), {
      code: 'dtype',
      message: 'segmentSum takes numbers, (c) => x(m, c) > 0 is a boolean',
      hint: 'write condition ? 1 : 0',
    }))

  it('is refused for elements of another dimension', () =>
    refuses(op('segmentSum(k, j, o, (c) => x(m, «c»))'), {
      code: 'shape',
      message: 'index c runs over k, but dimension 1 of x is n long',
      hint: 'loop over n, give both the same dimension name, or read it where it is inside, c < n ? ... : 0, or as an offset, first + c',
    }))
})

/** The kernel with a boundary off by one. */
function planted(kernel: Kernel): Kernel {
  const body = kernel.body.map((s) =>
    s.kind === 'let' && s.name === 'from0' ? { ...s, value: call('minimum', call('add', s.value, i32(1)), i32(3)) } : s,
  )
  return { ...kernel, body }
}

describe('the compiler', () => {
  const runs = kernelNamed('runs')
  const dims = { m: 2, n: 11, k: 4, k1: 5 }
  const tensors = {
    x: { data: Float64Array.from({ length: 22 }, (_, i) => i + 1), shape: [2, 11] },
    offsets: { data: Float64Array.from([0, 4, 4, 5, 11]), shape: [5] },
  }

  it('verifies types', () => {
    const change = (value: object): Kernel => ({
      ...runs,
      body: runs.body.map((s) => (s.kind === 'team' ? { ...s, ...value } : s)),
    })
    expect(() => verifyKernel(change({}), 'test')).not.toThrow()
    expect(() => verifyKernel(change({ type: 'i32' }), 'test')).toThrow('a segment sum is i32, its elements are f32')
    const fraction = { kind: 'const', type: 'f32', value: 1 }
    expect(() => verifyKernel(change({ scalars: { from: fraction, to: i32(2) } }), 'test')).toThrow(
      'the boundaries of a segment are integers',
    )
  })

  it('runs the loops to the same sums, and finds a boundary that is off by one', () => {
    const outputs = evaluateMapped(mapKernel({ kernel: runs, types: { T: 'f32' }, dims: {} }), { tensors, dims })
    expect(outputs.length).toBeGreaterThan(0)
    const sums = [10, 0, 5, 51, 54, 0, 16, 117]
    expect(Array.from(evaluateKernel(runs, tensors, dims).y?.data ?? [])).toEqual(sums)
    for (const { outputs: made } of outputs) expect(Array.from(made.y?.data ?? [])).toEqual(sums)
    for (const { outputs: made } of evaluateMapped(mapKernel({ kernel: planted(runs), types: { T: 'f32' }, dims: {} }), {
      tensors,
      dims,
    }))
      expect(Array.from(made.y?.data ?? [])).not.toEqual(sums)
  })

  it('prices values and boundaries, once', () => {
    const sizes = { m: 8, n: 65_536, k: 1024, k1: 1025 }
    const [part] = kernelParts(runs, { T: 'f16' }, { dims: sizes, attrs: {} }, costDevice('h200'))
    const least = 2 * sizes.m * sizes.n + 4 * sizes.k1
    expect(part?.bytesRead).toBeGreaterThanOrEqual(least)
    expect(part?.bytesRead).toBeLessThan(1.01 * least)
  })

  it('lets the number of rows choose no other team, which sums in another order', () => {
    const team = { kind: 'block', lanes: 512 } as const
    const keeps = (name: string): boolean => {
      const mapped = mapKernel({ kernel: kernelNamed(name), types: { T: 'f32' }, dims: {} })
      return keepsOrder({ kind: 'rows', team, chunks: 1, vec: mapped.vec }, mapped, 500)
    }
    expect([keeps('totals'), keeps('runs')]).toEqual([true, false])
    const { program } = mapKernel({ kernel: kernelNamed('carried'), types: {}, dims: {} })
    expect(program.kind === 'rows' && program.variants.map(({ limit }) => limit.rows)).toEqual([undefined])
  })

  it('gives each column a thread, and has a note where neighbours are far apart', () => {
    const teams = (kernel: Kernel): readonly string[] => {
      const { program } = mapKernel({ kernel, types: { T: 'f16' }, dims: {} })
      return program.kind === 'rows' ? program.variants.map(({ name }) => name) : []
    }
    expect(teams(kernelNamed('columns'))).toEqual(['thread_reread'])
    expect(teams(runs)).toEqual(['thread', 'lanes', 'warp', 'warp_wide', 'block_wide', 'block_reread'])
    const changed = source.replace("x: tensor('T', 'm n')", "x: tensor('T', 'n m')").replace('(c) => x(m, c)', '(c) => x(c, m)')
    const strided = read(changed).kernels.find(({ name }) => name === 'runs')
    if (strided === undefined) throw new Error('no kernel')
    const notes = notesOf(mapKernel({ kernel: strided, types: { T: 'f16' }, dims: {} }))
    expect(notes.map(({ kind }) => kind)).toEqual(['strided'])
  })
})

it('is fused with ops before and after it, on boundaries that ascend by their fact', () => {
  const doubled = op('doubled', {
    dims: ['m', 'n'],
    inputs: { x: tensor('f32', 'm n') },
    outputs: { y: tensor('f32', 'm n') },
    body:
      ({ x }) =>
      (m, c) => ({ y: x(m, c) * 2 }),
  })
  const sums = op('sums', {
    dims: ['m', 'n', 'k', 'k1'],
    inputs: { x: tensor('f32', 'm n'), offsets: tensor('i32', 'k1') },
    outputs: { y: tensor('f32', 'm k') },
    facts: { k1: 'k+1', offsets: { from: 0, to: 'n', order: 'ascending' } },
    body:
      ({ x, offsets }, { n }) =>
      (m, j) => ({ y: segmentSum(n, j, offsets, (c) => x(m, c)) }),
  })
  const pooled = graph('pooled', {
    inputs: { x: tensor('f32', 'm n'), offsets: tensor('i32', 'k1') },
    weights: {},
    attrs: [],
    build: (g, { x, offsets }) => {
      const before = g.apply(doubled, { x }).y
      const middle = g.apply(sums, { x: before, offsets }, {}, { k: 'k' }).y
      const after = g.apply(doubled, { x: middle }).y
      return { nodes: { before, sums: middle, after }, outputs: { y: after } }
    },
  })
  const runs = kernelNamed('runs')
  const stored = runs.tensors.map((each) => (typeof each.dtype !== 'string' ? { ...each, dtype: 'f32' as const } : each))
  const made = new Map([
    ['sums', { ...runs, name: 'sums', types: {}, tensors: stored }],
    ['doubled', kernelNamed('doubled')],
  ])
  const plan = { name: 'p', graph: 'pooled', groups: [{ kernel: 'fused', occurrences: [['before', 'sums', 'after']] }] }
  const [group] = applyPlan(pooled.graph, plan, made).groups
  if (group === undefined || isTemplate(group.derived.kernel)) throw new Error('no kernel')
  expect(group.derived.kernel.body.map(({ kind }) => kind)).toEqual(['let', 'let', 'team', 'store'])
  expect(() => checkDerived(group, made)).not.toThrow()
  const { kernel } = group.derived
  const body = kernel.body.map((s) => (s.kind === 'let' ? { ...s, value: call('maximum', s.value, i32(1)) } : s))
  const wrong = { ...group, derived: { ...group.derived, kernel: { ...kernel, body } } }
  expect(() => checkDerived(wrong, made)).toThrow('would give another result')
})

describe('segment sums on simt equal their IR', () => {
  let host: Host
  beforeAll(async () => {
    host = await openKernels(kernels)
  })
  afterAll(() => host?.close())

  /** Usual lengths on both sides of each team's longest, with one segment, a few, and one per element. */
  const sizes: readonly (readonly [n: number, k: number])[] = [
    [1, 1],
    [13, 13],
    [16, 1],
    [35, 2],
    [130, 1],
    [1000, 7],
    [1100, 3],
    [3001, 2],
    [9001, 1],
  ]

  it.each(Object.keys(boundaries))('%s', async (bounds) => {
    const complaints: string[] = []
    for (const key of ['runs__f32', 'runs__f16', 'runs__bf16', 'counts', 'shares', 'carried', 'columns__f32', 'columns__f16'])
      for (const [n, k] of sizes)
        complaints.push(await check(host, subject(key.split('__')[0] ?? '', k, bounds), host.entry(key), 3, n))
    expect(complaints.filter((text) => text !== '')).toEqual([])
  })

  it('have no elements in an empty row', async () => {
    expect(await check(host, subject('runs', 3, 'even'), host.entry('runs__f32'), 2, 0)).toBe('')
  })

  it('have the same bits whatever the number of rows', async () => {
    const { inputs } = subject('runs', 3, 'unequal segments')
    const make = (name: string) => inputs?.[name] ?? ((i: number) => Math.sin(i) * 10 ** (i % 5))
    const rows = async (m: number): Promise<number[]> => {
      const { outputs } = await launch(host, kernelNamed('runs'), host.entry('runs__f32'), { m, n: 1500, k: 3, k1: 4 }, make)
      return Array.from(outputs[0]?.stored ?? []).slice(0, 3)
    }
    expect(await rows(1)).toEqual(await rows(600))
  })

  it('tell a boundary that is off by one', async () => {
    const one = subject('runs', 3, 'even')
    const wrong = { ...one, kernel: planted(one.kernel) }
    expect(await check(host, wrong, host.entry('runs__f32'), 3, 9)).toContain('y at 3 x 9')
  })

  it.each([
    ['descend', [0, 3, 2, 5], 'a segment from 3 to 2 is none of a row of 5 elements'],
    ['begin before the row', [-1, 3, 4, 5], 'a segment from -1 to 3 is none of a row of 5 elements'],
    ['end after the row', [0, 3, 4, 6], 'a segment from 4 to 6 is none of a row of 5 elements'],
  ] as const)('are a fault where boundaries %s', async (_, offsets, fault) => {
    const make = (name: string) => (i: number) => (name === 'offsets' ? (offsets[i] ?? 0) : 1)
    await expect(launch(host, kernelNamed('runs'), host.entry('runs__f32'), { m: 2, n: 5, k: 3, k1: 4 }, make)).rejects.toThrow(
      fault,
    )
  })
})
