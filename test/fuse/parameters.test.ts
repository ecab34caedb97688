/** Parameters of fused kernels: an attribute of the graph is one, and names of members that are alike or taken by C++ do no harm. */
import { describe, expect, it } from 'vitest'
import { emitInstance } from '../../src/emit/generate.js'
import { printKernel } from '../../src/ir/print.js'
import { graph } from '../../src/lang/graph.js'
import { op } from '../../src/lang/op.js'
import { plan } from '../../src/lang/plan.js'
import { tensor } from '../../src/lang/tensor.js'
import { mapKernel } from '../../src/schedule/map.js'
import { planAll } from '../../src/search/plans.js'
import { read } from '../frontend/refuse.js'

const declared = `import { op, tensor } from 'heddle'
export const scaled = op('scaled', {
  dims: ['n'],
  inputs: { x: tensor('f32', 'n') },
  outputs: { y: tensor('f32', 'n') },
  attrs: { by: 2, plus: 1 },
  body: ({ x }, { by, plus }) => (c) => ({ y: x(c) * by + plus }),
})
`
const scaled = op('scaled', {
  dims: ['n'],
  inputs: { x: tensor('f32', 'n') },
  outputs: { y: tensor('f32', 'n') },
  attrs: { by: 2, plus: 1 },
  body:
    ({ x }, { by, plus }) =>
    (c) => ({ y: x(c) * by + plus }),
})

/** Two steps in one kernel with the given attributes. */
function fused(first: 'one' | 'other', second: 'one' | 'other', input = 'x') {
  const decl = graph('g', {
    inputs: { [input]: tensor('f32', 'n') },
    weights: {},
    attrs: ['one', 'other'],
    build: (g, inputs, _, attrs) => {
      const { y: a } = g.apply(scaled, { x: inputs[input] ?? { value: 0 } }, { by: attrs[first] })
      const { y: b } = g.apply(scaled, { x: a }, { by: attrs[second] })
      return { nodes: { a, b }, outputs: { y: b } }
    },
  })
  const { kernels } = planAll([plan('p', decl, { groups: { both: ['a', 'b'] } })], { g: decl }, read(declared).kernels)
  const [kernel] = kernels
  if (kernel === undefined) throw new Error('no kernel')
  return kernel
}

describe('attributes of a fused kernel', () => {
  it('are one if they are one attribute of the graph', () => {
    const kernel = fused('one', 'one')
    // Defaults are numbers of each op, which stay apart.
    expect(kernel.attrs.map(({ name }) => name)).toEqual(['by', 'plus', 'plus2'])
    expect(printKernel(kernel)).toContain('(x[c3] * by + plus) * by + plus2')
  })
  it('are two if they are two', () => {
    const kernel = fused('one', 'other')
    expect(kernel.attrs.map(({ name }) => name)).toEqual(['by', 'plus', 'by2', 'plus2'])
  })
  it('appear in the source under names that C++ allows', () => {
    const text = emitInstance(mapKernel({ kernel: fused('one', 'one', 'y'), types: {}, dims: {} }))
    expect(text).toContain('arguments.f32_attr(0, "by")')
  })
})
