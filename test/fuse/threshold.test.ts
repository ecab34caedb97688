/** A group with a threshold: one kernel with the elementwise ops around it, which is scheduled as one that searches. */
import { graph, op, row, tensor, threshold } from 'heddle'
import { expect, it } from 'vitest'
import { costDevice } from '../../src/cost/device.js'
import { kernelParts } from '../../src/cost/kernel.js'
import { applyPlan } from '../../src/fuse/apply.js'
import { call, dim, f32, index, local } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import type { Kernel, Stmt } from '../../src/ir/kernel.js'
import { printKernel } from '../../src/ir/print.js'
import { describeSchedule } from '../../src/schedule/describe.js'
import { mapKernel } from '../../src/schedule/map.js'
import { axis, kernel, load, tensor as parameter } from '../schedule/fixtures.js'
import { runGraph } from './host.js'

const signature = {
  dims: ['o', 'b'],
  inputs: { x: tensor('f32', 'o b') },
  outputs: { y: tensor('f32', 'o b') },
} as const

const twice = op('twice', {
  ...signature,
  body:
    ({ x }, { b }) =>
    (o) => ({ y: row(b, (c) => x(o, c) * 2) }),
})
/** Keeps the two largest of each row. */
const largest = op('largest', {
  ...signature,
  body:
    ({ x }, { b }) =>
    (o) => {
      const t = threshold(
        b,
        2,
        (c) => x(o, c),
        () => 1,
      )
      return { y: row(b, (c) => (x(o, c) >= t ? x(o, c) : 0)) }
    },
})

const at = (i: string): Expr => load('x', index('r'), index(i))
const store = (i: string, value: Expr): Stmt => ({
  kind: 'storeRow',
  tensor: 'y',
  rows: [index('r')],
  length: dim('b'),
  index: i,
  value,
})
const tensors = [parameter('x', 'in', 'o b', 'f32'), parameter('y', 'out', 'o b', 'f32')]
const made = (name: string, body: readonly Stmt[]): Kernel => kernel(name, 'o b', [axis('r', 'o')], tensors, body)
const kernels = new Map(
  [
    made('twice', [store('c', call('mul', at('c'), f32(2)))]),
    made('largest', [
      {
        kind: 'team',
        construct: 'threshold',
        name: 't',
        type: 'f32',
        length: dim('b'),
        index: 'c',
        scalars: { target: f32(2) },
        elements: { key: at('c'), weight: f32(1) },
      },
      store('c1', call('select', call('ge', at('c1'), local('t')), at('c1'), f32(0))),
    ]),
  ].map((each) => [each.name, each]),
)

const chain = graph('chain', {
  inputs: { x: tensor('f32', 'o b') },
  weights: {},
  attrs: [],
  build: (g, { x }) => {
    const before = g.apply(twice, { x }).y
    const cut = g.apply(largest, { x: before }).y
    const after = g.apply(twice, { x: cut }).y
    return { nodes: { before, cut, after }, outputs: { y: after } }
  },
}).graph

const groups = [{ kernel: 'fused', occurrences: [['before', 'cut', 'after']] }]
const planned = applyPlan(chain, { name: 'p', graph: 'chain', groups }, kernels)
const fused = planned.kernels.get('fused')
if (fused === undefined) throw new Error('no kernel')

it('is one kernel that computes the same', () => {
  const given = { x: [3, -1, 4, 1, 5, -9, 2, 6] }
  const dims = { o: 2, b: 4 }
  const run = (g: typeof chain) => runGraph(g, new Map([...kernels, ...planned.kernels]), given, dims, {}).y
  expect(Array.from(run(planned.graph) ?? [])).toEqual([12, 0, 16, 0, 20, 0, 0, 24])
  expect(run(planned.graph)).toEqual(run(chain))
  expect(printKernel(fused)).toMatch(/let t: f32 = threshold\(\w+ < b: r\[\w+\] weighs 1.0\) of 2.0/)
})

it('searches before the pass that uses the result, in one block variant', () => {
  const mapped = mapKernel({ kernel: fused, types: {}, dims: {} })
  expect(describeSchedule(mapped)).toContain('once a row: let t: f32 = threshold(c < b: x[i_o, ')
  if (mapped.program.kind !== 'rows') throw new Error('no row program')
  expect(mapped.program.kept.map((step) => step.kind)).toEqual(['team', 'pass'])
  expect(mapped.program.variants.filter(({ team }) => team.kind === 'block').map(({ name }) => name)).toEqual(['block_reread'])
})

it('costs its walks over a row that registers do not hold, and that of the pass which uses the result', () => {
  const readAt = (b: number): number | undefined =>
    kernelParts(fused, {}, { dims: { o: 2, b }, attrs: {} }, costDevice('h200'))[0]?.bytesRead
  expect([readAt(4), readAt(100_000)]).toEqual([4 * 2 * 4, (4 + 1) * 4 * 2 * 100_000])
})
