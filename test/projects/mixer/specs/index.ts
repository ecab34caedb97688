/** Layers with arbitrary names of dimensions: patches, channels, a mixing width. One declares its usual sizes, one does not. */
import { graph, plan, tensor } from 'heddle'
import { leaky, mixNorm, shift, split } from './ops.js'

const linear = 'r k, c k -> r c'

/** Channels are mixed, patch by patch. Dims: n images, p patches, w channels, z the inner width. */
export const mixer = graph('mixer', {
  inputs: { patches: tensor('T', 'n*p w') },
  weights: {
    gain: tensor('T', 'w'),
    up: tensor('T', 'z w'),
    upShift: tensor('T', 'z'),
    down: tensor('T', 'w z'),
    downShift: tensor('T', 'w'),
  },
  attrs: ['slope'],
  typical: { n: 4, p: 196, w: 512, z: 2048 },
  build: (g, { patches }, w, { slope }) => {
    const normed = g.apply(mixNorm, { x: patches, gain: w.gain }).y
    const wide = g.matmul(linear, normed, w.up)
    const shifted = g.apply(shift, { x: wide, by: w.upShift }).y
    const bent = g.apply(leaky, { x: shifted }, { slope }).y
    const narrow = g.matmul(linear, bent, w.down)
    const mixed = g.apply(shift, { x: narrow, by: w.downShift }).y
    return { nodes: { normed, wide, shifted, bent, narrow, mixed }, outputs: { mixed } }
  },
})

/** Declares no sizes; the number of pieces of a row is a dimension without an input. */
export const pieces = graph('pieces', {
  inputs: { x: tensor('T', 'rows cells') },
  weights: {},
  dims: ['parts'],
  build: (g, { x }) => {
    const cut = g.apply(split, { x }, {}, { q: 'parts' }).y
    const bent = g.apply(leaky, { x: g.view(cut, 'rows*parts cells') }).y
    return { nodes: { cut, bent }, outputs: { bent } }
  },
})

export const graphs = { mixer, pieces }

export const plans = [
  plan('folded', mixer, { groups: { shift_leaky: ['shifted', 'bent'] } }),
  plan('inside', mixer, { groups: { up_leaky: ['wide', 'shifted', 'bent'], down_shift: ['narrow', 'mixed'] } }),
  plan('folded', pieces, { groups: { split_leaky: ['cut', 'bent'] } }),
]
