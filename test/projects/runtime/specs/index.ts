/** A user's graph under plans: a feed-forward part followed by a norm, and a table that is written row by row. */
import { graph, plan, tensor } from 'heddle'
import { addRowBias, addRows, putRow, rmsNorm, squaredRelu } from './ops.js'

/** Dimensions: tokens t, width k, inner width f. */
export const feedForward = graph('feed_forward', {
  inputs: { x: tensor('T', 't k') },
  weights: { up: tensor('T', 'f k'), bias: tensor('T', 'f'), down: tensor('T', 'k f'), gamma: tensor('T', 'k') },
  attrs: ['eps'],
  typical: { t: 64, k: 96, f: 160 },
  build: (g, { x }, { up, bias, down, gamma }, { eps }) => {
    const inner = g.matmul('t k, f k -> t f', x, up)
    const biased = g.apply(addRowBias, { x: inner, bias }).y
    const active = g.apply(squaredRelu, { x: biased }).y
    const outer = g.matmul('t f, k f -> t k', active, down)
    const added = g.apply(addRows, { x: outer, residual: x }).y
    const normed = g.apply(rmsNorm, { x: added, gamma }, { eps }).y
    return { nodes: { inner, biased, active, outer, added, normed }, outputs: { normed, added } }
  },
})

/** Writes a row into a table, and returns the table normalised: a table that outlives runs is a state. */
export const remember = graph('remember', {
  inputs: { table: tensor('T', 'v k'), x: tensor('T', 'k'), place: tensor('i32', '1') },
  weights: { gamma: tensor('T', 'k') },
  build: (g, { table, x, place }, { gamma }) => {
    const put = g.apply(putRow, { table, x, place }).y
    const normed = g.apply(rmsNorm, { x: put, gamma }).y
    return { nodes: { put, normed }, outputs: { put, normed } }
  },
})

/** The activation in the epilogue of the first matmul, the norm with its residual in one kernel. */
export const fused = plan('fused', feedForward, {
  groups: { up_squared_relu: ['inner', 'biased', 'active'], add_rms_norm: ['added', 'normed'] },
})

export const graphs = { [feedForward.name]: feedForward, [remember.name]: remember }
export const plans = [fused]
