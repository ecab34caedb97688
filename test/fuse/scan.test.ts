/** Groups with a scan: one kernel along the scan's axis, and refusals of reads of a scanned row elsewhere. Histograms and rankings are refused. */
import { graph, histogram, op, row, scan, tensor } from 'heddle'
import { describe, expect, it } from 'vitest'
import { applyPlan } from '../../src/fuse/apply.js'
import { call, dim, f32, i32, index } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import type { Kernel, Stmt } from '../../src/ir/kernel.js'
import { printKernel } from '../../src/ir/print.js'
import type { Op } from '../../src/lang/types.js'
import { mapKernel } from '../../src/schedule/map.js'
import { axis, kernel, loadInt, tensor as parameter } from '../schedule/fixtures.js'
import { runGraph } from './host.js'

const signature = {
  dims: ['o', 'b'],
  inputs: { x: tensor('i32', 'o b') },
  outputs: { y: tensor('i32', 'o b') },
} as const

const twice = op('twice', {
  ...signature,
  body:
    ({ x }, { b }) =>
    (o) => ({ y: row(b, (c) => x(o, c) * 2) }),
})
const ends = op('ends', {
  ...signature,
  body:
    ({ x }, { b }) =>
    (o) => ({ y: scan(b, (c) => x(o, c)) }),
})
/** Reads each row backwards. */
const back = op('back', {
  ...signature,
  body:
    ({ x }, { b }) =>
    (o) => ({ y: row(b, (c) => x(o, b - 1 - c)) }),
})
const tally = op('tally', {
  ...signature,
  body:
    ({ x }, { b }) =>
    (o) => ({ y: histogram(b, b, (c) => x(o, c)) }),
})
/** The transposed tensor: its rows are the columns of its input. */
const turn = op('turn', {
  dims: ['o', 'b'],
  inputs: { x: tensor('i32', 'o b') },
  outputs: { y: tensor('i32', 'b o') },
  body:
    ({ x }, { o }) =>
    (j) => ({ y: row(o, (c) => x(c, j)) }),
})

const x = loadInt('x', index('r'), index('c'))
const tensors = [parameter('x', 'in', 'o b', 'i32'), parameter('y', 'out', 'o b', 'i32')]
const elementwise = (name: string, value: Expr): Kernel =>
  kernel(name, 'o b', [axis('r', 'o')], tensors, [
    { kind: 'storeRow', tensor: 'y', rows: [index('r')], length: dim('b'), index: 'c', value },
  ])
const scanned: readonly Stmt[] = [
  { kind: 'scan', name: 'e', type: 'i32', monoid: 'sum', length: dim('b'), index: 'c', value: x },
  {
    kind: 'storeRow',
    tensor: 'y',
    rows: [index('r')],
    length: dim('b'),
    index: 'c1',
    value: { kind: 'element', type: 'i32', row: 'e', index: index('c1') },
  },
]
const turned: Stmt = {
  kind: 'storeRow',
  tensor: 'y',
  rows: [index('r')],
  length: dim('o'),
  index: 'c',
  value: loadInt('x', index('c'), index('r')),
}
const counted: Stmt = {
  kind: 'histogram',
  tensor: 'y',
  rows: [index('r')],
  bins: dim('b'),
  length: dim('b'),
  index: 'c',
  value: x,
}
const kernels = new Map(
  [
    elementwise('twice', call('mul', x, i32(2))),
    kernel('ends', 'o b', [axis('r', 'o')], tensors, scanned),
    elementwise('back', loadInt('x', index('r'), call('sub', call('sub', dim('b'), i32(1)), index('c')))),
    kernel('turn', 'o b', [axis('r', 'b')], [parameter('x', 'in', 'o b', 'i32'), parameter('y', 'out', 'b o', 'i32')], [turned]),
    kernel('tally', 'o b', [axis('r', 'o')], tensors, [counted]),
  ].map((made) => [made.name, made]),
)

/** Ops one after the other, all in one group, and the values of both forms. */
function fuse(...ops: readonly Op[]) {
  const chain = graph('chain', {
    inputs: { x: tensor('i32', 'o b') },
    weights: {},
    attrs: [],
    build: (g, inputs) => {
      let value = inputs.x
      const nodes = Object.fromEntries(
        ops.map((each, i) => {
          const made = g.apply(each, { x: value }).y
          if (made === undefined) throw new Error(`${each.name} has no y`)
          value = made
          return [`n${i}`, made]
        }),
      )
      return { nodes, outputs: { y: value } }
    },
  }).graph
  const nodes = ops.map((_, i) => `n${i}`)
  const planned = applyPlan(chain, { name: 'p', graph: 'chain', groups: [{ kernel: 'fused', occurrences: [nodes] }] }, kernels)
  const given = { x: [3, -1, 4, 1, 5, -9, 2, 6] }
  const dims = { o: 2, b: 4 }
  const fused = planned.kernels.get('fused')
  if (fused === undefined) throw new Error('no kernel')
  return {
    fused,
    values: Array.from(runGraph(planned.graph, new Map([...kernels, ...planned.kernels]), given, dims, {}).y ?? []),
    wanted: Array.from(runGraph(chain, kernels, given, dims, {}).y ?? []),
  }
}

describe('a group with a scan', () => {
  it('is one kernel with the ops before and after it', () => {
    const { fused, values, wanted } = fuse(twice, ends, twice)
    expect(values).toEqual(wanted)
    expect(values).toEqual([12, 8, 24, 28, 20, -16, -8, 16])
    expect(printKernel(fused)).toMatch(/row e: i32 = scan sum\(\w+ < b: x\[i_o, \w+\] \* 2\)/)
  })

  it('may contain a scan of a scan', () => {
    const { fused, values, wanted } = fuse(ends, ends)
    expect(values).toEqual(wanted)
    expect(fused.body.filter((stmt) => stmt.kind === 'scan')).toHaveLength(2)
    expect(mapKernel({ kernel: fused, types: {}, dims: {} }).program.kind).toBe('rows')
  })

  it('may read its row at another place', () => {
    const { values, wanted } = fuse(twice, ends, back)
    expect(values).toEqual(wanted)
  })

  it('may not read it along another axis', () => {
    expect(() => fuse(ends, turn)).toThrow('group fused: nodes n1 and n0 cannot be one kernel: their iteration spaces differ')
  })
})

it('refuses a group with a histogram', () => {
  expect(() => fuse(twice, tally)).toThrow(
    'group fused: nodes n1 and n0 cannot be one kernel: n1 counts a histogram, which is a kernel of its own',
  )
})

it('refuses a group that ranks', () => {
  const best: Stmt = { kind: 'topK', name: 'v', indices: 'at', count: dim('b'), length: dim('b'), index: 'c', value: f32(1) }
  const ranking = kernel('tally', 'o b', [axis('r', 'o')], tensors, [
    best,
    {
      kind: 'storeRow',
      tensor: 'y',
      rows: [index('r')],
      length: dim('b'),
      index: 'd',
      value: { kind: 'element', type: 'i32', row: 'at', index: index('d') },
    },
  ])
  const chain = graph('chain', {
    inputs: { x: tensor('i32', 'o b') },
    weights: {},
    build: (g, inputs) => {
      const n0 = g.apply(twice, { x: inputs.x }).y
      const n1 = g.apply(tally, { x: n0 }).y
      return { nodes: { n0, n1 }, outputs: { y: n1 } }
    },
  }).graph
  const plan = { name: 'p', graph: 'chain', groups: [{ kernel: 'fused', occurrences: [['n0', 'n1']] }] }
  expect(() => applyPlan(chain, plan, new Map([...kernels, ['tally', ranking]]))).toThrow(
    'group fused: nodes n1 and n0 cannot be one kernel: n1 ranks a row, which is a kernel of its own',
  )
})
