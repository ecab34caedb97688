/** Dimensions that only facts name: no kernel has them, and their facts constrain other dimensions. */
import { describe, expect, it } from 'vitest'
import { printShape } from '../../../src/ir/shape.js'
import { graph } from '../../../src/lang/graph.js'
import { tensor as declare, op } from '../../../src/lang/index.js'
import { runOp } from '../../../src/lang/run.js'
import { checkCall } from '../../../src/runtime/api/check_call.js'
import { zeros } from '../../../src/runtime/api/index.js'
import { refusal } from '../../refusal.js'
import { read, refuses } from '../refuse.js'

const text = (dims: string, facts: string) => `import { op, tensor } from 'heddle'
export const turned = op('turned', {
  dims: [${dims}],
  inputs: { x: tensor('f32', 'm n') },
  outputs: { y: tensor('f32', 'm n') },
  facts: ${facts},
  body: ({ x }) => (m, c) => ({ y: x(m, c ^ 3) }),
})`
const factsOf = (dims: string, facts: string) => {
  const [kernel] = read(text(dims, facts)).kernels
  expect(kernel?.dims).toEqual(['m', 'n'])
  return kernel?.facts?.dims
}

describe('a dimension that only facts name', () => {
  it.each([
    ["{ n: '4*u' }", { n: { multipleOf: 4 } }],
    ["{ n: '4*u', u: { multipleOf: 2, atLeast: 3 } }", { n: { multipleOf: 8, atLeast: ['mul', 4, 3] } }],
    ["{ n: 'u+2' }", { n: { atLeast: ['add', 0, 2] } }],
    ["{ n: '4*u', m: '6*u' }", { n: { multipleOf: 4 }, m: { equal: ['mul', 6, ['idiv', 'n', 4]] } }],
    ["{ n: '4*u', u: 16 }", { n: { equal: ['mul', 4, 16] } }],
  ])('has the meaning of %s for other dimensions', (facts, expected) => {
    expect(factsOf("'m', 'n', 'u'", facts)).toEqual(expected)
  })
  it('may depend on another that only facts name', () => {
    expect(factsOf("'m', 'n', 'u', 'w'", "{ n: '4*u', u: '2*w' }")).toEqual({ n: { multipleOf: 8 } })
  })
  it.each([
    ["{ n: 'm*u' }", 'facts state sizes of dimensions that a tensor or the body has: remove it, and its fact of n'],
    ['{}', 'use it or remove it'],
  ])('is refused if nothing follows from it: %s', (facts, hint) =>
    refuses(text("'m', 'n', «'u'»", facts), { code: 'unused', message: 'dimension u of turned is never used', hint }),
  )
})

const halves = op('halves', {
  dims: ['m', 'n', 'k', 'u'],
  inputs: { x: declare('f32', 'm n') },
  outputs: { y: declare('f32', 'm k') },
  facts: { n: '4*u', k: '2*u' },
  body:
    ({ x }, { k }) =>
    (m, c) => ({ y: x(m, c + 0) * x(m, c + k) }),
})

describe('a call of such an op', () => {
  it('solves for extents that follow', () => {
    expect(checkCall(halves, { x: zeros('f32', [2, 8]) }, {}).outputs.y?.shape).toEqual([2, 4])
    const { y } = runOp(halves, { x: { shape: [1, 4], data: [1, 2, 3, 4] } })
    expect(y).toEqual({ shape: [1, 2], data: Float64Array.of(3, 8) })
  })
  it('is found in a graph', () => {
    const net = graph('halved', {
      inputs: { x: declare('f32', 'b 4*q') },
      weights: {},
      build: (g, { x }) => {
        const { y } = g.apply(halves, { x })
        return { nodes: { y }, outputs: { y } }
      },
    })
    expect(printShape(net.graph.values[net.graph.outputs.y ?? -1]?.shape ?? [])).toBe('b 2*q')
  })
  it('refuses contradictions', () => {
    expect(refusal(() => checkCall(halves, { x: zeros('f32', [2, 6]) }, {}))).toMatchObject({
      code: 'call.extent',
      message: 'halves: dimension n: expected 4*u, by the facts of the op, got 6 according to x [2, 6]',
    })
  })
})
