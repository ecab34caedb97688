/** BERT's input layer: token, type and position embeddings, summed and normalised (Devlin et al. 2018), and its form for models without types. */
import { graph, tensor } from 'heddle'
import { add } from '../ops/add.js'
import { addPosition } from '../ops/add_position.js'
import { embeddingLookup } from '../ops/embedding_lookup.js'
import { layerNorm } from '../ops/layer_norm.js'
import { bertTables } from './typical.js'

/** Dims: b batch, s seq, h heads, d headDim, v vocab, u token types, p positions. Padded tokens are computed like any other. */
export const embeddings = graph('embeddings', {
  inputs: { ids: tensor('i32', 'b*s'), typeIds: tensor('i32', 'b*s') },
  weights: {
    words: tensor('T', 'v h*d'),
    types: tensor('T', 'u h*d'),
    positions: tensor('T', 'p h*d'),
    gamma: tensor('T', 'h*d'),
    beta: tensor('T', 'h*d'),
  },
  attrs: ['eps'],
  typical: { ...bertTables, u: 2 },
  build: (g, { ids, typeIds }, w, { eps }) => {
    const words = g.apply(embeddingLookup, { ids, table: w.words }).y
    const types = g.apply(embeddingLookup, { ids: typeIds, table: w.types }).y
    const typed = g.apply(add, { x: words, y: types }).z
    const placed = g.apply(addPosition, { x: g.view(typed, 'b s h*d'), table: w.positions }).y
    const norm = g.apply(layerNorm, { x: g.view(placed, 'b*s h*d'), gamma: w.gamma, beta: w.beta }, { eps }).y
    return { nodes: { words, types, typed, placed, norm }, outputs: { hidden: norm } }
  },
})

/** Input layer of models whose tokens have no types. */
export const untypedEmbeddings = graph('untyped_embeddings', {
  inputs: { ids: tensor('i32', 'b*s') },
  weights: {
    words: tensor('T', 'v h*d'),
    positions: tensor('T', 'p h*d'),
    gamma: tensor('T', 'h*d'),
    beta: tensor('T', 'h*d'),
  },
  attrs: ['eps'],
  typical: bertTables,
  build: (g, { ids }, w, { eps }) => {
    const words = g.apply(embeddingLookup, { ids, table: w.words }).y
    const placed = g.apply(addPosition, { x: g.view(words, 'b s h*d'), table: w.positions }).y
    const norm = g.apply(layerNorm, { x: g.view(placed, 'b*s h*d'), gamma: w.gamma, beta: w.beta }, { eps }).y
    return { nodes: { words, placed, norm }, outputs: { hidden: norm } }
  },
})
