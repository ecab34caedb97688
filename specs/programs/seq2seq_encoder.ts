/**
 * The encoder of an encoder-decoder model (Pegasus, Marian): scaled embeddings, layers, the final norm of a pre-LN model, and keys and values for
 * every decoder layer, which it stores in states. Rows beyond the length of a source hold meaningless numbers. Dims: b batch, s seq, h heads, d
 * headDim, i inner, g and e heads and their size in the decoder, v vocab, p positions.
 */
import { program, tensor } from 'heddle'
import { encoderLayers } from '../graphs/encoder_layers.js'
import { embedScaled, finalNorm, memoryKeysValues } from '../graphs/seq2seq_encoder.js'
import { splitHeads } from '../layouts/split_heads.js'

export interface Seq2seqEncoderProgram {
  readonly layers: number
  readonly decoderLayers: number
  readonly activation: keyof typeof encoderLayers.pre
  /** True if norms precede attention and inner networks. */
  readonly preNorm: boolean
  /** True if a norm follows the last layer. */
  readonly finalNorm: boolean
  readonly eps: number
  /** Factor of scores: 1/sqrt(headDim). */
  readonly scale: number
  /** Factor of embeddings. */
  readonly factor: number
}

const config: Seq2seqEncoderProgram = {
  layers: 6,
  decoderLayers: 6,
  activation: 'silu',
  preNorm: false,
  finalNorm: false,
  eps: 1e-5,
  scale: 1 / 8,
  factor: 1,
}

/** The states of a decoder layer's memory. */
export const memoryStates = (layer: number) => ({ keys: `memoryKeys${layer}`, values: `memoryValues${layer}` })

export const seq2seqEncoder = program('seq2seq_encoder', {
  dims: { b: 8, s: 128, h: 8, d: 64, i: 2048, g: 8, e: 64, v: 58_101, p: 512 },
  config,
  inputs: { ids: tensor('i32', 'b s'), lengths: tensor('i32', 'b') },
  build: (p, { ids, lengths }, { layers, decoderLayers, activation, eps, scale, factor, ...norms }) => {
    const tokens = p.ragged({ batch: 'b', seq: 's', lengths, tokens: 't' })
    const layerGraph = encoderLayers[norms.preNorm ? 'pre' : 'post'][activation]
    const weights = p.weights('embeddings')
    const embedded = p.apply(embedScaled, { ids: tokens(ids) }, weights, { factor }, { label: 'embeddings' })
    const hidden = p.repeat('layer', layers, embedded.hidden, (x, layer) => {
      return p.apply(layerGraph, { x, lengths }, layer.weights, { eps, scale }).hidden
    })
    const memory = norms.finalNorm
      ? p.apply(finalNorm, { x: hidden }, p.weights('norm'), { eps }, { label: 'norm' }).hidden
      : hidden
    for (let layer = 0; layer < decoderLayers; layer++) {
      const label = `memory${layer}`
      const made = p.apply(memoryKeysValues, { x: memory }, p.weights(label), {}, { label })
      const names = memoryStates(layer)
      const state = (name: string) => p.state(name, tensor('T', 'b s g e', splitHeads), { cleared: true })
      p.next(state(names.keys), made.keys)
      p.next(state(names.values), made.values)
    }
    return { memory }
  },
})
