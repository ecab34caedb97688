/** Refusals of graphs declared in untyped JavaScript without a field that the types require. */
import { describe, expect, it } from 'vitest'
import { graph, op, tensor } from '../../src/index.js'
import { refusal } from '../refusal.js'

const x = tensor('T', 'm n')
const whole = {
  inputs: { x },
  weights: {},
  build: (_: unknown, inputs: { x: object }) => ({ nodes: {}, outputs: { x: inputs.x } }),
}
/** Untyped JavaScript as the compiler sees it. */
const declare = (config: unknown) => graph('layer', config as never)

it('takes the whole declaration', () => expect(declare(whole).name).toBe('layer'))

it.each<[string, unknown]>([
  ['config', undefined],
  ['inputs', { ...whole, inputs: undefined }],
  ['weights', { ...whole, weights: undefined }],
  ['weights', { ...whole, weights: null }],
  ['build', { ...whole, build: undefined }],
  ['result of build', { ...whole, build: () => undefined }],
  ['nodes', { ...whole, build: () => ({ outputs: {} }) }],
  ['outputs', { ...whole, build: () => ({ nodes: {} }) }],
])('refuses a graph without %s', (part, config) =>
  expect(refusal(() => declare(config))).toMatchObject({
    class: 'usage',
    code: 'graph.config',
    message: `graph layer has no ${part}`,
  }),
)

it('names the dimensions of an output that no input determines, and shows how to give them', () => {
  const spread = op('spread', {
    dims: ['m', 'u', 'v'],
    types: { T: ['f32'] },
    inputs: { x: tensor('T', 'm') },
    outputs: { y: tensor('T', 'm u v') },
    body:
      ({ x: given }) =>
      (m, _u, _v) => ({ y: given(m) }),
  })
  const layer = (extents?: Readonly<Record<string, string>>) =>
    graph('layer', {
      inputs: { given: tensor('T', 'm') },
      weights: {},
      build: (g, { given }) => {
        const { y } = g.apply(spread, { x: given }, {}, extents)
        return { nodes: { y }, outputs: { y } }
      },
    })
  const { code, message, hint } = refusal(() => layer())
  expect([code, message]).toEqual(['graph.output', 'spread: no input fixes dimensions u, v, of "m u v" of output y'])
  expect(hint).toContain("as the fourth argument of apply: g.apply(op, inputs, {}, { u: '...', v: '...' })")
  expect(refusal(() => layer({ u: 'u' })).message).toContain('no input fixes dimension v, of')
  expect(layer({ u: 'u', v: '3*v' }).nodes).toEqual(['y'])
})

describe('storage types at apply', () => {
  const made = op('made', {
    dims: ['m'],
    types: { T: ['f32', 'f16'], U: ['f32', 'bf16'] },
    inputs: { x: tensor('i32', 'm'), z: tensor('f32', 'm') },
    outputs: { y: tensor('T', 'm'), w: tensor('U', 'm') },
    body:
      ({ x, z }) =>
      (m) => ({ y: x(m) + z(m), w: z(m) }),
  })
  const layer = (z: string, results: Record<string, string> = {}) =>
    graph('typed', {
      inputs: { x: tensor('i32', 'm'), z: tensor(z, 'm') },
      weights: {},
      build: (g, { x, z: given }) => {
        const { y, w } = g.apply(made, { x, z: given }, {}, {}, results)
        return { nodes: { y }, outputs: { y, w } }
      },
    })
  it('are requested if no input has them', () => {
    const { code, message, hint } = refusal(() => layer('f32'))
    expect([code, message]).toEqual(['graph.output', 'made: no input fixes the storage type T of output y'])
    expect(hint).toContain("as the fifth argument of apply: g.apply(op, inputs, {}, {}, { T: '...', U: '...' })")
    expect(refusal(() => layer('f32', { T: 'f16' })).hint).toContain("{ U: '...' }")
    expect(layer('f32', { T: 'T', U: 'f32' }).nodes).toEqual(['y'])
  })
  it('are named as they are declared', () => {
    const { code, message } = refusal(() => layer('T', { T: 'T', U: 'f32' }))
    expect([code, message]).toEqual(['graph.dtype', 'made: z must be f32, the value given is T'])
  })
})
