/** A program of one's own: a layer four times over, a state that every run adds to, and two plans. */
import { graph, plan, program, state, tensor } from 'heddle'
import { above, join, mix, pick } from './ops.js'

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
const words = graph('words', {
  inputs: { ids: tensor('i32', 'b*s') },
  weights: { table: tensor('T', 'v n') },
  build: (g, { ids }, { table }) => {
    const { y } = g.apply(pick, { ids, table })
    return { nodes: { y }, outputs: { rows: y } }
  },
})
const signs = graph('signs', {
  inputs: { x: tensor('T', 'b*s n') },
  weights: {},
  build: (g, { x }) => {
    const { y } = g.apply(above, { x })
    return { nodes: { y }, outputs: { flags: y } }
  },
})
export const graphs = { mixer, sum, words, signs }
const packed = { batch: 'b', seq: 's', tokens: 't' }
export const plans = [
  plan('fused', mixer, { groups: { matmul_mix: ['product', 'mixed'] } }),
  plan('ragged', mixer, { packed, groups: {} }),
  plan('ragged', words, { packed, groups: {} }),
  plan('ragged', signs, { packed, groups: {} }),
  plan('sized', mixer, { groups: {}, byRows: { 14: 'fused' } }),
  plan('int8', mixer, { quantised: { values: ['x'] }, groups: {} }),
]
// #region mixers
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
// #endregion
/** Ids in, flags out, with states that are declared first. */
export const tagger = program('tagger', {
  dims: { b: 4, s: 16, n: 64, v: 100 },
  inputs: { ids: tensor('i32', 'b s'), lengths: tensor('i32', 'b') },
  states: { seen: state('T', 'b*s n', { cleared: true }), flags: state('i32', 'b*s n') },
  build: (p, { ids, lengths }, _, { seen, flags }) => {
    const tokens = p.ragged({ batch: 'b', seq: 's', lengths })
    const { rows } = p.apply(words, { ids: tokens(ids) }, p.weights('words'))
    const hidden = p.repeat('layer', 2, rows, (x, layer) => p.apply(mixer, { x }, layer.weights).hidden)
    const made = p.apply(signs, { x: hidden })
    p.next(seen, p.apply(sum, { x: seen, y: hidden }).total)
    p.next(flags, made.flags)
    return { hidden, marks: made.flags }
  },
})
export const programs = [mixers, tagger]
