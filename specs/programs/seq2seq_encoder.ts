/**
 * The encoder of an encoder-decoder model (Pegasus, Marian): scaled embeddings, layers, the final norm of a pre-LN model, and keys and values for
 * every decoder layer, which it stores in states. Rows beyond the length of a source hold meaningless numbers. Dims: b batch, s seq, h heads, d
 * headDim, i inner, g and e heads and their size in the decoder, v vocab, p positions.
 */
import { type Programming, type ProgramResult, type ProgramTensor, type ProgramWeights, program, tensor } from 'heddle'
import { encoderLayers, pairLayers } from '../graphs/encoder_layers.js'
import { attendedMemory, embedScaled, finalNorm, memoryKeysValues } from '../graphs/seq2seq_encoder.js'
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

const dims = { b: 8, s: 128, h: 8, d: 64, i: 2048, g: 8, e: 64, v: 58_101, p: 512 }
const inputs = { ids: tensor('i32', 'b s'), lengths: tensor('i32', 'b') }

/** Every token attends to all tokens of its source, and so does the decoder. */
export const seq2seqEncoder = program('seq2seq_encoder', {
  dims,
  config,
  inputs,
  build: (p, given, config) => {
    const { lengths } = given
    const layer = encoderLayers[config.preNorm ? 'pre' : 'post'][config.activation]
    return encode(p, given, config, {
      layer: (x, weights, attrs) => p.apply(layer, { x, lengths }, weights, attrs).hidden,
      attended: (x) => x,
    })
  },
})

/**
 * A token attends those of its source that `mask` selects: the token of row s that of column t where it is true. The memory is in the order of `order`:
 * its first rows are the tokens that the decoder attends, and their number is the memory's length.
 */
export const seq2seqEncoderPairs = program('seq2seq_encoder_pairs', {
  dims,
  config,
  inputs: { ...inputs, mask: tensor('bool', 'b s s'), order: tensor('i32', 'b s') },
  build: (p, { mask, order, ...given }, config) => {
    const { lengths } = given
    const layer = pairLayers[config.preNorm ? 'pre' : 'post'][config.activation]
    return encode(p, given, config, {
      layer: (x, weights, attrs) => p.apply(layer, { x, lengths, mask }, weights, attrs).hidden,
      attended: (x) => p.apply(attendedMemory, { x, order }, {}, {}, { label: 'attended' }).hidden,
    })
  },
})

/** Parts of the encoder that depend on its mask. */
interface Masking {
  /** Builds a layer: its hidden states from the previous ones. */
  readonly layer: (
    x: ProgramResult,
    weights: ProgramWeights,
    attrs: { readonly eps: number; readonly scale: number },
  ) => ProgramResult
  /** The memory as the decoder attends it. */
  readonly attended: (memory: ProgramResult) => ProgramResult
}

interface Given {
  readonly ids: ProgramTensor<'i32', 2>
  readonly lengths: ProgramTensor<'i32', 1>
}

function encode(p: Programming, { ids, lengths }: Given, config: Seq2seqEncoderProgram, { layer: layerOf, attended }: Masking) {
  const { layers, decoderLayers, eps, scale, factor } = config
  const tokens = p.ragged({ batch: 'b', seq: 's', lengths, tokens: 't' })
  const weights = p.weights('embeddings')
  const embedded = p.apply(embedScaled, { ids: tokens(ids) }, weights, { factor }, { label: 'embeddings' })
  const hidden = p.repeat('layer', layers, embedded.hidden, (x, layer) => layerOf(x, layer.weights, { eps, scale }))
  const memory = attended(
    config.finalNorm ? p.apply(finalNorm, { x: hidden }, p.weights('norm'), { eps }, { label: 'norm' }).hidden : hidden,
  )
  for (let layer = 0; layer < decoderLayers; layer++) {
    const label = `memory${layer}`
    const made = p.apply(memoryKeysValues, { x: memory }, p.weights(label), {}, { label })
    const names = memoryStates(layer)
    const state = (name: string) => p.state(name, tensor('T', 'b s g e', splitHeads), { cleared: true })
    p.next(state(names.keys), made.keys)
    p.next(state(names.values), made.values)
  }
  return { memory }
}
