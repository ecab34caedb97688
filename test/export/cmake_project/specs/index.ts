/** Specs of a CMake project: two graphs, a plan that fuses one of them, and an op of one storage type alone. */
import { graph, op, plan, tensor } from 'heddle'

export const scaled = op('scaled', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16'] },
  inputs: { x: tensor('T', 'm n'), gamma: tensor('T', 'n') },
  outputs: { y: tensor('T', 'm n') },
  body: (i) => (m, c) => ({ y: i.x(m, c) * i.gamma(c) }),
})
export const shifted = op('shifted', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16'] },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  body: (i) => (m, c) => ({ y: i.x(m, c) + 1 }),
})
export const squared = op('squared', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16'] },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('f32', 'm n') },
  body: (i) => (m, c) => ({ y: i.x(m, c) * i.x(m, c) }),
})
export const halved = op('halved', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n') },
  outputs: { y: tensor('f32', 'm n') },
  body: (i) => (m, c) => ({ y: i.x(m, c) * 0.5 }),
})

export const affine = graph('affine', {
  inputs: { x: tensor('T', 'm n'), gamma: tensor('T', 'n') },
  weights: {},
  build: (g, { x, gamma }) => {
    const large = g.apply(scaled, { x, gamma }).y
    const y = g.apply(shifted, { x: large }).y
    return { nodes: { large, y }, outputs: { y } }
  },
})
export const energy = graph('energy', {
  inputs: { x: tensor('T', 'm n') },
  weights: {},
  build: (g, { x }) => {
    const square = g.apply(squared, { x }).y
    const y = g.apply(halved, { x: square }).y
    return { nodes: { square, y }, outputs: { y } }
  },
})

export const graphs = { affine, energy }
export const plans = [plan('fused', affine, { groups: { scaled_shifted: ['large', 'y'] } })]
