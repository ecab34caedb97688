/** Around packed layers: where the tokens of each sequence lie, and padding removed from and restored to activations. */
import { graph, tensor } from 'heddle'
import { locateRows, packRows, sequenceStarts, unpackRows } from 'heddle/std'

/** From the lengths of sequences to the places of their tokens in `t` packed rows. The number of tokens stays on the device. */
export const packing = graph('packing', {
  inputs: { lengths: tensor('i32', 'b') },
  weights: {},
  build: (g, { lengths }) => {
    const scanned = g.apply(sequenceStarts, { lengths: g.view(lengths, '1 b') }).starts
    const starts = g.view(scanned, 'b')
    const { sequences, positions } = g.apply(locateRows, { starts, lengths }, {}, { t: 't' })
    return { nodes: { scanned, sequences }, outputs: { starts, sequences, positions } }
  },
})

/** Padded tokens to packed rows. */
export const removePadding = graph('remove_padding', {
  inputs: { x: tensor('T', 'b*s h*d'), sequences: tensor('i32', 't'), positions: tensor('i32', 't') },
  weights: {},
  build: (g, { x, sequences, positions }) => {
    const rows = g.apply(packRows, { x: g.view(x, 'b s h*d'), sequences, positions }).y
    return { nodes: { rows }, outputs: { rows } }
  },
})

/** Packed rows to padded tokens; padded positions are zero. */
export const restorePadding = graph('restore_padding', {
  inputs: { x: tensor('T', 't h*d'), starts: tensor('i32', 'b'), lengths: tensor('i32', 'b') },
  weights: {},
  build: (g, { x, starts, lengths }) => {
    const tokens = g.apply(unpackRows, { x, starts, lengths }, {}, { s: 's' }).y
    return { nodes: { tokens }, outputs: { tokens: g.view(tokens, 'b*s h*d') } }
  },
})
