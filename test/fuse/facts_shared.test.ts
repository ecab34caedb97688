/** A fact of an extent that several inputs of a derived kernel have is a fact of each of them. */
import { expect, it } from 'vitest'
import { graph, idiv, op, plan, tensor } from '../../src/index.js'
import { planAll } from '../../src/search/plans.js'
import { read } from '../frontend/refuse.js'

const source = `import { idiv, op, tensor } from 'heddle'
export const widened = op('widened', {
  dims: ['m', 'k', 'p'],
  inputs: { x: tensor('f32', 'm k'), s: tensor('f32', 'm p') },
  outputs: { y: tensor('f32', 'm k') },
  facts: { k: '32*p' },
  body: ({ x, s }) => (m, k) => ({ y: x(m, k) * s(m, idiv(k, 32)) }),
})`
const widened = op('widened', {
  dims: ['m', 'k', 'p'],
  inputs: { x: tensor('f32', 'm k'), s: tensor('f32', 'm p') },
  outputs: { y: tensor('f32', 'm k') },
  facts: { k: '32*p' },
  body:
    ({ x, s }) =>
    (m, k) => ({ y: x(m, k) * s(m, idiv(k, 32)) }),
})
const net = graph('net', {
  inputs: { x: tensor('f32', 'rows depth'), left: tensor('f32', 'rows blocks'), z: tensor('f32', 'columns depth') },
  weights: { right: tensor('f32', 'columns blocks') },
  build: (g, { x, left, z }, { right }) => {
    const a = g.apply(widened, { x, s: left }).y
    const b = g.apply(widened, { x: z, s: right }).y
    const y = g.matmul('m k, n k -> m n', a, b)
    return { nodes: { a, b, y }, outputs: { y } }
  },
})

it('scales of both factors of a matmul have as many places', () => {
  const { kernels } = read(source)
  const [made] = planAll([plan('p', net, { groups: { all: ['a', 'b', 'y'] } })], { net }, kernels).templates
  const places = (made?.tensors ?? []).flatMap(({ name, dims }) => (name.startsWith('s') ? [dims[1] ?? ''] : []))
  expect(new Set(places).size).toBe(2)
  const equal = places.map((dim) => made?.facts?.dims[dim]?.equal)
  expect(equal.filter((dim) => places.includes(String(dim)))).toHaveLength(1)
})
