/** A program of one's own: a layer four times over, a state that the next run reads, and two plans. */
import { graph, maximum, op, plan, program, state, tensor } from 'heddle'

export const mix = op('mix', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16'] },
  inputs: { x: tensor('T', 'm n'), product: tensor('T', 'm n'), bias: tensor('T', 'n') },
  outputs: { y: tensor('T', 'm n') },
  body: (i) => (m, c) => ({ y: i.x(m, c) + maximum(i.product(m, c) + i.bias(c), 0) / 2 }),
})
export const cell = graph('cell', {
  inputs: { x: tensor('T', 'm n'), before: tensor('T', 'm n') },
  weights: { weight: tensor('T', 'n n'), bias: tensor('T', 'n') },
  build: (g, { x, before }, { weight, bias }) => {
    const product = g.matmul('m k, n k -> m n', before, weight)
    const mixed = g.apply(mix, { x, product, bias }).y
    return { nodes: { product, mixed }, outputs: { y: mixed } }
  },
})
export const stack = program('stack', {
  dims: { m: 64, n: 256 },
  config: { layers: 4 },
  inputs: { x: tensor('T', 'm n') },
  states: { memory: state('T', 'm n', { cleared: true }) },
  build: (p, { x }, { layers }, { memory }) => {
    const last = p.repeat('layer', layers, x, (y, layer) => p.apply(cell, { x: y, before: y }, layer.weights).y)
    const { y } = p.apply(cell, { x: last, before: memory }, p.weights('memory'))
    p.next(memory, y)
    return { y }
  },
})
export const graphs = { cell }
export const plans = [plan('fused', cell, { groups: { matmul_mix: ['product', 'mixed'] } })]
export const programs = { stack }
