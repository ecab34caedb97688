/** Attention of which the graph needs values of rows of the softmax too, each planned as one kernel. */
import { graph, plan, tensor } from 'heddle'
import * as ops from './ops.js'

const inputs = (q: string, k: string, v: string) => ({ q: tensor('T', q), k: tensor('T', k), v: tensor('T', v) })
export const two = graph('two', {
  inputs: inputs('n s g c', 'n s g c', 'n s g d'),
  weights: {},
  build: (g, { q, k, v }) => {
    const raw = g.matmul('n i g c, n j g c -> n g i j', q, k)
    const low = g.apply(ops.tame, { w: raw }).o
    const { o, l } = g.apply(ops.spread, { w: low })
    const y = g.matmul('n g i j, n j g d -> n i g d', o, v)
    return { nodes: { raw, low, o, y }, outputs: { y, l } }
  },
})
export const other = graph('other', {
  inputs: inputs('n r g c', 'n z g c', 'n z g d'),
  weights: {},
  build: (g, { q, k, v }) => {
    const raw = g.matmul('n i g c, n j g c -> n g i j', q, k)
    const low = g.apply(ops.scaled, { w: raw }).o
    const o = g.apply(ops.weigh, { w: low }).o
    const l = g.apply(ops.level, { w: low }).l
    const y = g.matmul('n g i j, n j g d -> n i g d', o, v)
    return { nodes: { raw, low, o, l, y }, outputs: { y, l } }
  },
})
export const parts = graph('parts', {
  inputs: inputs('n s g c', 'n s g c', 'n s g d'),
  weights: {},
  build: (g, { q, k, v }) => {
    const raw = g.matmul('n i g c, n j g c -> n g i j', q, k)
    const low = g.apply(ops.tame, { w: raw }).o
    const u = g.apply(ops.peak, { w: low }).u
    const e = g.apply(ops.lift, { w: low, u }).e
    const s = g.apply(ops.whole, { e }).s
    const o = g.apply(ops.share, { e, s }, {}, {}, { T: 'T' }).o
    const l = g.apply(ops.joined, { u, s }).l
    const y = g.matmul('n g i j, n j g d -> n i g d', o, v)
    return { nodes: { raw, low, u, e, s, o, l, y }, outputs: { y, l, u, s } }
  },
})
export const windowed = graph('windowed', {
  inputs: inputs('n s g c', 'n s g c', 'n s g d'),
  weights: {},
  build: (g, { q, k, v }) => {
    const raw = g.matmul('n i g c, n j g c -> n g i j', q, k)
    const low = g.apply(ops.window, { w: raw }).o
    const o = g.apply(ops.weigh, { w: low }).o
    const l = g.apply(ops.level, { w: low }).l
    const y = g.matmul('n g i j, n j g d -> n i g d', o, v)
    return { nodes: { raw, low, o, l, y }, outputs: { y, l } }
  },
})
export const lowest = graph('lowest', {
  inputs: inputs('n s g c', 'n s g c', 'n s g d'),
  weights: {},
  build: (g, { q, k, v }) => {
    const raw = g.matmul('n i g c, n j g c -> n g i j', q, k)
    const low = g.apply(ops.scaled, { w: raw }).o
    const o = g.apply(ops.weigh, { w: low }).o
    const l = g.apply(ops.least, { w: low }).l
    const y = g.matmul('n g i j, n j g d -> n i g d', o, v)
    return { nodes: { raw, low, o, l, y }, outputs: { y, l } }
  },
})
export const paired = graph('paired', {
  inputs: inputs('n s g c', 'n s g c', 'n s g d'),
  weights: {},
  build: (g, { q, k, v }) => {
    const raw = g.matmul('n i g c, n j g c -> n g i j', q, k)
    const low = g.apply(ops.scaled, { w: raw }).o
    const o = g.apply(ops.weigh, { w: low }).o
    const l = g.apply(ops.level, { w: low }).l
    const y = g.matmul('n g i j, n j g d -> n i g d', o, v)
    return { nodes: { raw, low, o, l, y }, outputs: { y, l, o } }
  },
})

export const plans = [
  plan('ptwo', two, { groups: { twice: ['raw', 'low', 'o', 'y'] } }),
  plan('pother', other, { groups: { apart: ['raw', 'low', 'o', 'l', 'y'] } }),
  plan('pparts', parts, { groups: { many: ['raw', 'low', 'u', 'e', 's', 'o', 'l', 'y'] } }),
  plan('pwindowed', windowed, { groups: { before: ['raw', 'low', 'o', 'l', 'y'] } }),
]
