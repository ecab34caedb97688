/**
 * Language model heads that choose the likeliest token of each row themselves, for steps that need their logits for nothing else: a plan may reduce
 * the rows of the matmul as they are computed, and never store them. Logits are float32 for every storage type of a model, as those of other heads.
 */
import { type GraphBuilder, type GraphTensor, graph, tensor } from 'heddle'
import { addBias } from '../ops/add_bias.js'
import { castF32 } from '../ops/cast_f32.js'
import { greedyLoss } from '../ops/greedy_loss.js'
import { rmsNorm } from '../ops/rms_norm.js'
import { greedy } from '../ops/sample.js'
import { llamaStep, llamaVocab, marianRows, marianVocab } from './typical.js'

type Inputs = Readonly<Record<'step' | 'finished' | 'limit' | 'ends', GraphTensor>>

/** A choice of tokens from logits, and the names of its results. */
type Choose<O extends string> = (
  g: GraphBuilder,
  inputs: Inputs & { readonly logits: GraphTensor },
) => Readonly<Record<O | 'words', GraphTensor>>

const words = (g: GraphBuilder, inputs: Inputs & { readonly logits: GraphTensor }) => {
  const { words, finishedAfter: finished } = g.apply(greedy, inputs)
  return { words, finished }
}

/** Tokens with their losses. */
const losses = (g: GraphBuilder, inputs: Inputs & { readonly logits: GraphTensor }) => {
  const { words, finishedAfter: finished, loss } = g.apply(greedyLoss, inputs)
  return { words, finished, loss }
}

const rows = (dim: string) =>
  ({
    step: tensor('i32', '1'),
    finished: tensor('i32', dim),
    limit: tensor('i32', dim),
    ends: tensor('i32', 'e'),
  }) as const

/** A decoder's head. Dims: b batch, w beams, h heads, d headDim, v vocab, e end ids. */
const decoderHead = <O extends string>(name: string, choose: Choose<O>) =>
  graph(name, {
    inputs: { x: tensor('T', 'b*w h*d'), ...rows('b*w') },
    weights: { weight: tensor('T', 'v h*d') },
    typical: { ...marianRows, v: marianVocab, e: 1 },
    build: (g, { x, ...inputs }, w) => {
      const product = g.matmul('m k, n k -> m n', x, w.weight)
      const logits = g.apply(castF32, { x: product }).y
      const outputs = choose(g, { logits, ...inputs })
      return { nodes: { product, logits, chosen: outputs.words }, outputs }
    },
  })

const biasedDecoderHead = <O extends string>(name: string, choose: Choose<O>) =>
  graph(name, {
    inputs: { x: tensor('T', 'b*w h*d'), ...rows('b*w') },
    weights: { weight: tensor('T', 'v h*d'), bias: tensor('T', 'v') },
    typical: { ...marianRows, v: marianVocab, e: 1 },
    build: (g, { x, ...inputs }, w) => {
      const product = g.matmul('m k, n k -> m n', x, w.weight)
      const biased = g.apply(addBias, { x: product, bias: w.bias }).y
      const logits = g.apply(castF32, { x: biased }).y
      const outputs = choose(g, { logits, ...inputs })
      return { nodes: { product, biased, logits, chosen: outputs.words }, outputs }
    },
  })

/** The head of the LLaMA family. Dims: m rows, n hidden, v vocab, e end ids. */
const llamaGreedyHead = <O extends string>(name: string, choose: Choose<O>) =>
  graph(name, {
    inputs: { x: tensor('T', 'm n'), ...rows('m') },
    weights: { gamma: tensor('T', 'n'), weight: tensor('T', 'v n') },
    attrs: ['eps'],
    typical: { m: 8, n: llamaStep.n, v: llamaVocab, e: 1 },
    build: (g, { x, ...inputs }, w, { eps }) => {
      const norm = g.apply(rmsNorm, { x, gamma: w.gamma }, { eps }).y
      const product = g.matmul('m k, n k -> m n', norm, w.weight)
      const logits = g.apply(castF32, { x: product }).y
      const outputs = choose(g, { logits, ...inputs })
      return { nodes: { norm, product, logits, chosen: outputs.words }, outputs }
    },
  })

/** By the results that a step keeps: tokens alone, or also the negative log-likelihood of each. */
export const greedyHeads = {
  words: {
    decoder: decoderHead('greedy_head', words),
    biased: biasedDecoderHead('biased_greedy_head', words),
    llama: llamaGreedyHead('llama_greedy_head', words),
  },
  losses: {
    decoder: decoderHead('greedy_loss_head', losses),
    biased: biasedDecoderHead('biased_greedy_loss_head', losses),
    llama: llamaGreedyHead('llama_greedy_loss_head', losses),
  },
} as const
