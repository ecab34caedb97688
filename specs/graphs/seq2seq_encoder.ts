/** Graphs around the layers of an encoder for a decoder: scaled embeddings, the norm after the last pre-LN layer, keys and values of the memory. */
import { graph, tensor } from 'heddle'
import { addBias } from '../ops/add_bias.js'
import { addPosition } from '../ops/add_position.js'
import { embeddingLookup } from '../ops/embedding_lookup.js'
import { layerNorm } from '../ops/layer_norm.js'
import { scale } from '../ops/scale.js'
import { splitHeads } from '../ops/split_heads.js'
import { takeTokens } from '../ops/take_tokens.js'
import { bertRows, bertTables } from './typical.js'

/** Tokens times `factor` plus positions; no norm. Dims: b batch, s seq, h heads, d headDim, v vocab, p positions. */
export const embedScaled = graph('embed_scaled', {
  inputs: { ids: tensor('i32', 'b*s') },
  weights: { words: tensor('T', 'v h*d'), positions: tensor('T', 'p h*d') },
  attrs: ['factor'],
  typical: bertTables,
  build: (g, { ids }, w, { factor }) => {
    const words = g.apply(embeddingLookup, { ids, table: w.words }).y
    const scaled = g.apply(scale, { x: words }, { factor }).y
    const placed = g.apply(addPosition, { x: g.view(scaled, 'b s h*d'), table: w.positions }).y
    return { nodes: { words, scaled, placed }, outputs: { hidden: g.view(placed, 'b*s h*d') } }
  },
})

/** The norm after the last layer of a pre-LN encoder. */
export const finalNorm = graph('final_norm', {
  inputs: { x: tensor('T', 'b*s h*d') },
  weights: { gamma: tensor('T', 'h*d'), beta: tensor('T', 'h*d') },
  attrs: ['eps'],
  typical: bertRows,
  build: (g, { x }, w, { eps }) => {
    const norm = g.apply(layerNorm, { x, gamma: w.gamma, beta: w.beta }, { eps }).y
    return { nodes: { norm }, outputs: { hidden: norm } }
  },
})

/** Tokens that a decoder attends, before all others: row j of a sequence is its token `order(b, j)`. */
export const attendedMemory = graph('attended_memory', {
  inputs: { x: tensor('T', 'b*s h*d'), order: tensor('i32', 'b s') },
  weights: {},
  typical: bertRows,
  build: (g, { x, order }) => {
    const taken = g.apply(takeTokens, { x: g.view(x, 'b s h*d'), order }).y
    return { nodes: { taken }, outputs: { hidden: g.view(taken, 'b*s h*d') } }
  },
})

/**
 * Keys and values of the memory for a decoder layer, stored by head, the same in every step. The heads are the decoder's, whose states may be wider
 * or narrower than the memory. Dims: b batch, s seq of the source, h heads and d headDim of the encoder, g heads and e headDim of the decoder.
 */
export const memoryKeysValues = graph('memory_keys_values', {
  inputs: { x: tensor('T', 'b*s h*d') },
  weights: {
    keyWeight: tensor('T', 'g*e h*d'),
    keyBias: tensor('T', 'g*e'),
    valueWeight: tensor('T', 'g*e h*d'),
    valueBias: tensor('T', 'g*e'),
  },
  typical: { b: 8, s: 128, h: 8, d: 64, g: 8, e: 64 },
  build: (g, { x }, w) => {
    const linear = 'm k, n k -> m n'
    const key = g.matmul(linear, x, w.keyWeight)
    const value = g.matmul(linear, x, w.valueWeight)
    const keyBias = g.apply(addBias, { x: key, bias: w.keyBias }).y
    const valueBias = g.apply(addBias, { x: value, bias: w.valueBias }).y
    const keyHeads = g.apply(splitHeads, { x: g.view(keyBias, 'b s g e') }).y
    const valueHeads = g.apply(splitHeads, { x: g.view(valueBias, 'b s g e') }).y
    return {
      nodes: { key, value, keyBias, valueBias, keyHeads, valueHeads },
      outputs: { keys: keyHeads, values: valueHeads },
    }
  },
})
