/** Attention to memories some of which are empty: a query without keys has no weights, under a written plan, a searched one, and in programs. */
import { autoPlan, exp, graph, max, op, plan, program, row, sum, tensor } from 'heddle'

export const hide = op('hide', {
  dims: ['b', 's', 't'],
  types: { T: ['f32', 'f16'] },
  inputs: { x: tensor('T', 'b s t'), lengths: tensor('i32', 'b') },
  outputs: { y: tensor('T', 'b s t') },
  facts: { lengths: { from: 0, to: 't' } },
  body:
    ({ x, lengths }) =>
    (b, s, t) => ({ y: t < lengths(b) ? x(b, s, t) : -1e30 }),
})
export const weigh = op('weigh', {
  dims: ['m', 't'],
  types: { T: ['f32', 'f16'] },
  inputs: { x: tensor('T', 'm t') },
  outputs: { y: tensor('T', 'm t') },
  body:
    ({ x }, { t }) =>
    (m) => {
      const v = row(t, (c) => x(m, c))
      const top = max(t, (c) => v(c))
      const raised = row(t, (c) => exp(v(c) - top))
      const total = sum(t, (c) => raised(c))
      return { y: row(t, (c) => raised(c) / total) }
    },
})
const attend = graph('attend', {
  inputs: { query: tensor('T', 'b s d'), memory: tensor('T', 'b t d'), lengths: tensor('i32', 'b') },
  weights: {},
  typical: { b: 2, s: 64, t: 64, d: 64 },
  build: (g, { query, memory, lengths }) => {
    const scores = g.matmul('b s d, b t d -> b s t', query, memory)
    const hidden = g.apply(hide, { x: scores, lengths }).y
    const weights = g.apply(weigh, { x: g.view(hidden, 'b*s t') }).y
    const context = g.matmul('b s t, b t d -> b s d', g.view(weights, 'b s t'), memory)
    return { nodes: { scores, hidden, weights, context }, outputs: { context } }
  },
})
const twice = program('twice', {
  dims: { b: 2, s: 3, t: 4, d: 8 },
  config: {},
  inputs: { query: tensor('T', 'b s d'), memory: tensor('T', 'b t d'), lengths: tensor('i32', 'b') },
  build: (p, { query, memory, lengths }) => {
    const first = p.apply(attend, { query, memory, lengths }).context
    return { context: p.apply(attend, { query: first, memory, lengths }, {}, {}, { label: 'again' }).context }
  },
})
export const graphs = { attend }
export const plans = [
  plan('written', attend, { groups: { attention: ['scores', 'hidden', 'weights', 'context'] } }),
  autoPlan('searched', attend, { device: 'h200' }),
]
export const programs = { twice }
