/** A program of one's own: a layer four times over, a state that every run adds to, and two plans. */
import { graph, plan, program, tensor } from 'heddle'
import { join, mix } from './ops.js'

const mixer = graph('mixer', {
  inputs: { x: tensor('T', 'b*s n') },
  weights: { weight: tensor('T', 'n n'), bias: tensor('T', 'n') },
  build: (g, { x }, { weight, bias }) => {
    const product = g.matmul('m k, n k -> m n', x, weight)
    const mixed = g.apply(mix, { x, product, bias }).y
    return { nodes: { product, mixed }, outputs: { hidden: mixed } }
  },
})
const sum = graph('sum', {
  inputs: { x: tensor('T', 'm n'), y: tensor('T', 'm n') },
  weights: {},
  build: (g, { x, y }) => {
    const { z } = g.apply(join, { x, y })
    return { nodes: { z }, outputs: { total: z } }
  },
})
export const graphs = { mixer, sum }
const packed = { batch: 'b', seq: 's', tokens: 't' }
export const plans = [
  plan('fused', mixer, { groups: { matmul_mix: ['product', 'mixed'] } }),
  plan('ragged', mixer, { packed, groups: {} }),
]
export const mixers = program('mixers', {
  dims: { b: 4, s: 16, n: 64 },
  config: { layers: 4 },
  inputs: { x: tensor('T', 'b s n'), lengths: tensor('i32', 'b') },
  build: (p, { x, lengths }, { layers }) => {
    const rows = p.ragged({ batch: 'b', seq: 's', lengths })
    const hidden = p.repeat('layer', layers, rows(x), (x, layer) => p.apply(mixer, { x }, layer.weights).hidden)
    const before = p.state('total', tensor('T', 'b*s n'), { cleared: true })
    const { total } = p.apply(sum, { x: before, y: hidden })
    p.next(before, total)
    return { hidden, result: total }
  },
})
