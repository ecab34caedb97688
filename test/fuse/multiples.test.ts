/** Multiples that members state are facts of the kernel derived from them, in its own dimensions. */
import { describe, expect, it } from 'vitest'
import { graph, op, plan, tensor } from '../../src/index.js'
import { planAll } from '../../src/search/plans.js'
import { read } from '../frontend/refuse.js'

const text = (quads: string) => `import { op, tensor } from 'heddle'
export const doubled = op('doubled', {
  dims: ['m', 'n', 'h'],
  inputs: { x: tensor('f32', 'm h') },
  outputs: { y: tensor('f32', 'm n') },
  facts: { n: '2*h' },
  body: ({ x }) => (m, c) => ({ y: x(m, c >> 1) }),
})
export const quads = op('quads', {
  dims: ['m', 'd'],
  inputs: { x: tensor('f32', 'm d') },
  outputs: { y: tensor('f32', 'm d') },
  facts: { d: ${quads} },
  body: ({ x }) => (m, c) => ({ y: x(m, c ^ 3) }),
})`

const doubled = op('doubled', {
  dims: ['m', 'n', 'h'],
  inputs: { x: tensor('f32', 'm h') },
  outputs: { y: tensor('f32', 'm n') },
  facts: { n: '2*h' },
  body:
    ({ x }) =>
    (m, c) => ({ y: x(m, c >> 1) }),
})
const quads = op('quads', {
  dims: ['m', 'd'],
  inputs: { x: tensor('f32', 'm d') },
  outputs: { y: tensor('f32', 'm d') },
  facts: { d: { multipleOf: 4 } },
  body:
    ({ x }) =>
    (m, c) => ({ y: x(m, c ^ 3) }),
})
const net = graph('net', {
  inputs: { x: tensor('f32', 'b k') },
  weights: {},
  build: (g, { x }) => {
    const twice = g.apply(doubled, { x }).y
    const y = g.apply(quads, { x: twice }).y
    return { nodes: { twice, y }, outputs: { y } }
  },
})

/** Facts about dimensions of the single kernel, by the facts of the op. */
function dimFacts(stated: string) {
  const { kernels, diagnostics } = read(text(stated))
  expect(diagnostics).toEqual([])
  const made = planAll([plan('p', net, { groups: { both: ['twice', 'y'] } })], { net }, kernels)
  return made.kernels.find(({ name }) => name === 'both')?.facts?.dims
}

describe('multiples', () => {
  it('of a multiple of a dimension are divided by its factor', () => {
    expect(dimFacts('{ multipleOf: 4 }')).toEqual({ d: { equal: ['mul', 2, 'h'], multipleOf: 4 }, h: { multipleOf: 2 } })
    expect(dimFacts('{ multipleOf: 3 }')).toMatchObject({ h: { multipleOf: 3 } })
  })
  it('that always hold are left out', () => expect(dimFacts('{ multipleOf: 2 }')?.h).toBeUndefined())
})
