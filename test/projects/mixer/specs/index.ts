/** Layers whose dimensions are called as their author likes: patches, channels, a mixing width. One says how large it usually is, one does not. */
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

/** Says nothing of its sizes; the pieces a row is cut into are a dimension that no input has. */
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
