/** Passes identify the ops of the standard library by identity: an op with another declaration is not one of them, regardless of its name. */
import { expect, it } from 'vitest'
import { stackGraph } from '../../src/fuse/graph/stack.js'
import { type GraphBuilder, type GraphTensor, graph } from '../../src/lang/graph.js'
import { op } from '../../src/lang/op.js'
import { isNodeOf } from '../../src/lang/op_node.js'
import { tensor } from '../../src/lang/tensor.js'
import { take } from '../../src/std/index.js'

const another = op('take', {
  dims: ['m', 'j', 'n'],
  types: { T: ['f32'] },
  inputs: { x: tensor('T', 'm j n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x }) =>
    (m, c) => ({ y: x(m, 0, c) + 1 }),
})

/** Two matmuls, and an unused part. */
const layerWith = (part: (g: GraphBuilder, x: GraphTensor) => GraphTensor) =>
  graph('layer', {
    inputs: { x: tensor('T', 'm k'), parts: tensor('T', 'm 2 n') },
    weights: { a: tensor('T', 'n k'), b: tensor('T', 'n k') },
    build: (g, { x, parts }, w) => {
      const first = g.matmul('m k, n k -> m n', x, w.a)
      const second = g.matmul('m k, n k -> m n', x, w.b)
      return { nodes: { first, second, unread: part(g, parts) }, outputs: { first, second } }
    },
  }).graph

const stacked = (part: Parameters<typeof layerWith>[0]) => {
  const plan = { name: 'p', graph: 'layer', groups: [], stacked: [{ name: 'both', nodes: ['first', 'second'] }] }
  return stackGraph(layerWith(part), plan, new Map()).nodes
}

it('an unused part is dropped; the result of another op of that name is not', () => {
  const names = (part: Parameters<typeof layerWith>[0]) => stacked(part).map(({ name }) => name)
  expect(names((g, x) => g.apply(take, { x }).y)).toEqual(['both', 'both.parts', 'first', 'second'])
  expect(names((g, x) => g.apply(another, { x }).y)).toEqual(['both', 'both.parts', 'first', 'second', 'unread'])
})

it('the nodes a stack adds are of the library, and know their part', () => {
  const nodes = stacked((g, x) => g.apply(another, { x }).y)
  const parts = nodes.flatMap((node) => (isNodeOf(take, node) ? [[node.name, node.attrs.part]] : []))
  expect(parts).toEqual([
    ['first', 0],
    ['second', 1],
  ])
})
