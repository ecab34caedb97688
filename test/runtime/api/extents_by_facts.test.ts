/** Extents of calls, runs and graphs that follow from the facts of an op, and those that contradict them. */
import { describe, expect, it } from 'vitest'
import { printShape } from '../../../src/ir/shape.js'
import { graph } from '../../../src/lang/graph.js'
import { tensor as declare, op } from '../../../src/lang/index.js'
import { runOp } from '../../../src/lang/run.js'
import { checkCall } from '../../../src/runtime/api/check_call.js'
import { zeros } from '../../../src/runtime/api/index.js'
import { refusal } from '../../refusal.js'

const halves = op('halves', {
  dims: ['m', 'n', 'h'],
  inputs: { x: declare('f32', 'm n') },
  outputs: { y: declare('f32', 'm h') },
  facts: { n: '2*h' },
  body:
    ({ x }, { h }) =>
    (m, c) => ({ y: x(m, c + 0) * x(m, c + h) }),
})
const doubled = op('doubled', {
  dims: ['m', 'n', 'h'],
  inputs: { x: declare('f32', 'm h') },
  outputs: { y: declare('f32', 'm n') },
  facts: { n: '2*h' },
  body:
    ({ x }) =>
    (m, c) => ({ y: x(m, c >> 1) }),
})
const quads = op('quads', {
  dims: ['m', 'd'],
  inputs: { x: declare('f32', 'm d') },
  outputs: { y: declare('f32', 'm d') },
  facts: { d: { multipleOf: 4 } },
  body:
    ({ x }) =>
    (m, c) => ({ y: x(m, c ^ 3) }),
})

describe('a call', () => {
  it('takes extents that facts tell, either way', () => {
    expect(checkCall(doubled, { x: zeros('f32', [2, 3]) }, {}).outputs.y?.shape).toEqual([2, 6])
    expect(checkCall(halves, { x: zeros('f32', [2, 6]) }, {}).outputs.y?.shape).toEqual([2, 3])
    expect(checkCall(halves, { x: zeros('f32', [2, 6]) }, { dims: { h: 3 } }).outputs.y?.shape).toEqual([2, 3])
    expect(checkCall(quads, { x: zeros('f32', [2, 8]) }, {}).dims).toEqual({ m: 2, d: 8 })
    expect(checkCall({ ...halves, name: 'renamed' }, { x: zeros('f32', [2, 6]) }, {}).dims.h).toBe(3)
  })
  it.each([
    [
      'an extent given that is another',
      () => checkCall(doubled, { x: zeros('f32', [2, 3]) }, { dims: { n: 7 } }),
      'doubled: dimension n: expected 2*h, by the facts of the op, got 7 according to dims',
      'h is 3 according to x [2, 3]',
    ],
    [
      'a half of what is odd',
      () => checkCall(halves, { x: zeros('f32', [2, 7]) }, {}),
      'halves: dimension n: expected 2*h, by the facts of the op, got 7 according to x [2, 7]',
      'no extent of h gives this size',
    ],
    [
      'what no number divides',
      () => checkCall(quads, { x: zeros('f32', [2, 6]) }, {}),
      'quads: dimension d: expected a multiple of 4, by the facts of the op, got 6 according to x [2, 6]',
      'the next multiple is 8',
    ],
  ])('refuses %s', (_, call, message, hint) => expect(refusal(call)).toMatchObject({ code: 'call.extent', message, hint }))
})

it('a body that Node runs has the same extents', () => {
  const { y } = runOp(halves, { x: { shape: [1, 4], data: [1, 2, 3, 4] } })
  expect(y).toEqual({ shape: [1, 2], data: Float64Array.of(3, 8) })
})

describe('a graph', () => {
  const net = graph('by_facts', {
    inputs: { x: declare('f32', 'b k') },
    weights: {},
    build: (g, { x }) => {
      const twice = g.apply(doubled, { x }).y
      const turned = g.apply(quads, { x: twice }).y
      const y = g.apply(halves, { x: turned }).y
      return { nodes: { twice, turned, y }, outputs: { twice, y } }
    },
  })
  it('has products and quotients from facts', () => {
    const { values, outputs } = net.graph
    expect(Object.values(outputs).map((id) => printShape(values[id]?.shape ?? []))).toEqual(['b 2*k', 'b k'])
  })
  it('requests extents that are not products', () => {
    const ended = op('ended', {
      dims: ['m', 'n', 'h'],
      inputs: { x: declare('f32', 'm h') },
      outputs: { y: declare('f32', 'm n') },
      facts: { n: 'h+1' },
      body:
        ({ x }, { h }) =>
        (m, c) => ({ y: c < h ? x(m, c + 0) : 0 }),
    })
    const made = () =>
      graph('asking', {
        inputs: { x: declare('f32', 'b k') },
        weights: {},
        build: (g, { x }) => ({ nodes: {}, outputs: { y: g.apply(ended, { x }).y } }),
      })
    expect(refusal(made)).toMatchObject({
      code: 'graph.output',
      hint: "pass extents as the fourth argument of apply: g.apply(op, inputs, {}, { n: '...' })",
    })
  })
})
