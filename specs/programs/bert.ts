/**
 * BERT (Devlin et al. 2018): embeddings, encoder layers, and the heads on top of them. Dims: b batch, s seq, h heads, d headDim, i inner, v vocab, u
 * token types, p positions, c classes.
 */
import { type Programming, type ProgramResult, type ProgramTensor, type ProgramWeights, program, tensor } from 'heddle'
import { embeddings, untypedEmbeddings } from '../graphs/embeddings.js'
import { addedLayers } from '../graphs/encoder_layer.js'
import { encoderLayers, pairLayers } from '../graphs/encoder_layers.js'
import {
  firstMaskedPooling,
  firstPooling,
  hiddenStates,
  lastMaskedPooling,
  lastPooling,
  meanMaskedPooling,
  meanPooling,
  pooler,
  sequenceClassifiers,
  spanClassifier,
  tokenClassifier,
  unitLength,
} from '../graphs/heads.js'
import { finalNorm } from '../graphs/seq2seq_encoder.js'

export interface BertProgram {
  readonly layers: number
  readonly activation: keyof typeof encoderLayers.post
  /** Position of the layers' norms: after attention and inner network, or before them, with another after the last layer. */
  readonly norms: keyof typeof encoderLayers
  readonly eps: number
  /** Factor of scores: 1/sqrt(headDim). */
  readonly scale: number
  /** True if tokens have types. */
  readonly typed: boolean
  /**
   * `states` are the last hidden states in float32, `pooled` also the first token's through a dense layer and tanh. Classifiers are of every token,
   * of the sequence, or of the begin and end of an answer. `mean`, `first` and `last` are one row of each sequence, in float32: the mean of its
   * tokens, or one of them. Under a mask of pairs, its tokens are those that some token attends.
   */
  readonly head: 'states' | 'pooled' | 'tokens' | 'sequence' | 'span' | 'mean' | 'first' | 'last'
  /** Divides rows of sequences by their length. */
  readonly normalize: boolean
  /** Activation after the first dense layer of a classifier of sequences. */
  readonly pooling: keyof typeof sequenceClassifiers
}

const config: BertProgram = {
  layers: 12,
  activation: 'gelu',
  norms: 'post',
  eps: 1e-12,
  scale: 1 / 8,
  typed: true,
  head: 'states',
  normalize: false,
  pooling: 'tanh',
}

const dims = { b: 8, s: 128, h: 12, d: 64, i: 3072, v: 30522, u: 2, p: 512, c: 9 }
const inputs = { ids: tensor('i32', 'b s'), typeIds: tensor('i32', 'b s'), lengths: tensor('i32', 'b') }

interface Given {
  readonly ids: ProgramTensor<'i32', 2>
  readonly typeIds: ProgramTensor<'i32', 2>
  readonly lengths: ProgramTensor<'i32', 1>
}

/** Parts of the model that depend on its mask. */
interface Masking {
  /** Builds a layer: its hidden states from the previous ones. */
  readonly layer: (
    x: ProgramResult,
    weights: ProgramWeights,
    attrs: { readonly eps: number; readonly scale: number },
  ) => ProgramResult
  /** One row of each sequence, from hidden states. */
  readonly pool: (x: ProgramResult, head: 'mean' | 'first' | 'last') => ProgramResult
}

/** Every sequence attends itself, in its full length. */
export const bert = program('bert', {
  dims,
  config,
  inputs,
  build: (p, given, config) => {
    const { lengths } = given
    const layer = encoderLayers[config.norms][config.activation]
    return model(p, given, config, {
      layer: (x, weights, attrs) => p.apply(layer, { x, lengths }, weights, attrs).hidden,
      pool: (x, head) => {
        const label = { label: head }
        if (head === 'first') return p.apply(firstPooling, { x }, {}, {}, label).rows
        return p.apply(head === 'mean' ? meanPooling : lastPooling, { x, lengths }, {}, {}, label).rows
      },
    })
  },
})

/** A token attends those of its sequence that `mask` selects: the token of row s that of column t where it is true. */
export const bertPairs = program('bert_pairs', {
  dims,
  config,
  inputs: { ...inputs, mask: tensor('bool', 'b s s') },
  build: (p, { mask, ...given }, config) => {
    const { lengths } = given
    const layer = pairLayers[config.norms][config.activation]
    return model(p, given, config, {
      layer: (x, weights, attrs) => p.apply(layer, { x, lengths, mask }, weights, attrs).hidden,
      pool: (x, head) => p.apply(maskedPoolings[head], { x, lengths, mask }, {}, {}, { label: head }).rows,
    })
  },
})

export interface BertAddedProgram extends Omit<BertProgram, 'norms'> {
  /** Number that is added to scores of excluded pairs. */
  readonly maskValue: number
  /** Number that is added to the denominator of the softmax. */
  readonly softmaxEps: number
}

const { norms: _, ...postNorm } = config

/** The same with FasterTransformer's arithmetic of masks: norms follow attention and inner network. */
export const bertAdded = program('bert_added', {
  dims,
  config: { ...postNorm, maskValue: -10_000, softmaxEps: 1e-6 } as BertAddedProgram,
  inputs: { ...inputs, mask: tensor('bool', 'b s s') },
  build: (p, { mask, ...given }, { maskValue, softmaxEps, ...config }) => {
    const { lengths } = given
    const layer = addedLayers[config.activation]
    return model(
      p,
      given,
      { ...config, norms: 'post' },
      {
        layer: (x, weights, attrs) => p.apply(layer, { x, lengths, mask }, weights, { ...attrs, maskValue, softmaxEps }).hidden,
        pool: (x, head) => p.apply(maskedPoolings[head], { x, lengths, mask }, {}, {}, { label: head }).rows,
      },
    )
  },
})

const maskedPoolings = { mean: meanMaskedPooling, first: firstMaskedPooling, last: lastMaskedPooling } as const

function model(p: Programming, { ids, typeIds, lengths }: Given, config: BertProgram, { layer: layerOf, pool }: Masking) {
  const { layers, norms, eps, scale, typed, head, normalize, pooling } = config
  const tokens = p.ragged({ batch: 'b', seq: 's', lengths, tokens: 't' })
  const embedded = typed
    ? p.apply(embeddings, { ids: tokens(ids), typeIds: tokens(typeIds) }, p.weights('embeddings'), { eps })
    : p.apply(untypedEmbeddings, { ids: tokens(ids) }, p.weights('embeddings'), { eps }, { label: 'embeddings' })
  const last = p.repeat('layer', layers, embedded.hidden, (x, layer) => layerOf(x, layer.weights, { eps, scale }))
  const hidden = norms === 'post' ? last : p.apply(finalNorm, { x: last }, p.weights('norm'), { eps }, { label: 'norm' }).hidden
  if (head === 'tokens' || head === 'sequence') {
    const classifier = head === 'tokens' ? tokenClassifier : sequenceClassifiers[pooling]
    const { logits, labels } = p.apply(classifier, { x: hidden }, p.weights('classifier'), {}, { label: 'classifier' })
    return { logits, labels }
  }
  if (head === 'span') {
    const { logits } = p.apply(spanClassifier, { x: hidden }, p.weights('span'), {}, { label: 'span' })
    return { logits }
  }
  if (head === 'mean' || head === 'first' || head === 'last') {
    const rows = pool(hidden, head)
    return { embeddings: normalize ? p.apply(unitLength, { x: rows }, {}, {}, { label: 'unit' }).rows : rows }
  }
  const { states } = p.apply(hiddenStates, { x: hidden }, {}, {}, { label: 'states' })
  if (head === 'states') return { states }
  const { pooled } = p.apply(pooler, { x: hidden }, p.weights('pooler'))
  return { states, pooled }
}
