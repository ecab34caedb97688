/**
 * The encoder of an encoder-decoder model as a sequence of graphs: scaled embeddings, layers, the final norm of a pre-LN model, and
 * what every decoder layer attends to. It runs once for each batch of sources; decoding reads its results at every step.
 */
import {
  encoderLayerGelu,
  encoderLayerGeluTanh,
  encoderLayerRelu,
  encoderLayerSilu,
} from '../../../specs/graphs/encoder_layer.js'
import {
  encoderLayerPreGelu,
  encoderLayerPreGeluTanh,
  encoderLayerPreRelu,
  encoderLayerPreSilu,
} from '../../../specs/graphs/encoder_layer_pre.js'
import { embedScaled, finalNorm, memoryKeysValues } from '../../../specs/graphs/seq2seq_encoder.js'
import { usageError } from '../../errors.js'
import type { GraphDecl } from '../../lang/graph.js'
import { defaultPlan, type ModelPlan } from '../../program/plans.js'
import { type Assembly, type Result, Wiring } from '../assembly/wiring.js'
import type { Seq2seqConfig } from './seq2seq_config.js'
import { encoderLayerNames, memoryNames, seq2seqEmbeddings, seq2seqFinalNorm } from './seq2seq_weights.js'

type LayerGraphs = Readonly<Record<Seq2seqConfig['activation'], GraphDecl>>

const postLayers: LayerGraphs = {
  gelu: encoderLayerGelu,
  gelu_tanh: encoderLayerGeluTanh,
  relu: encoderLayerRelu,
  silu: encoderLayerSilu,
}

const preLayers: LayerGraphs = {
  gelu: encoderLayerPreGelu,
  gelu_tanh: encoderLayerPreGeluTanh,
  relu: encoderLayerPreRelu,
  silu: encoderLayerPreSilu,
}

export interface SourceShape {
  readonly batch: number
  /** Positions the sources are padded to. */
  readonly seq: number
  /** Rows of packed tensors: at least the number of tokens. `batch * seq`, room for full sequences, by default. */
  readonly tokens?: number
}

/** Extents of the dimensions the encoder's graphs leave open; `g` and `e` are the decoder's heads and their size. */
export const seq2seqEncoderDims = (config: Seq2seqConfig, { batch, seq, tokens }: SourceShape): Record<string, number> => ({
  b: batch,
  s: seq,
  t: tokens ?? batch * seq,
  h: config.encoder.heads,
  d: config.encoder.headDim,
  i: config.encoder.inner,
  g: config.decoder.heads,
  e: config.decoder.headDim,
  v: config.vocab,
  p: config.positions,
})

/** Values the caller supplies: i32, `ids` of batch*seq or, where the embeddings are packed, of the packed rows; `lengths` of batch. */
export const seq2seqEncoderInputs = ['ids', 'lengths'] as const

/** Names of what a decoder layer attends to: 'b s g e' each, head by head. */
export const memoryOutputs = (layer: number) => ({ keys: `memoryKeys${layer}`, values: `memoryValues${layer}` })

/**
 * Wires the encoder under a plan. Its results are `memory`, the last states 'b*s h*d' with padding, and for each decoder layer the keys
 * and values of `memoryOutputs`. `hidden` holds every layer's input: `hidden0` are the embeddings. Rows beyond the length of a source
 * hold numbers that mean nothing.
 * @throws usage `plan.model` for a plan without the model's layers
 */
export function assembleSeq2seqEncoder(config: Seq2seqConfig, plan: ModelPlan): Assembly {
  const { eps, encoder, decoder } = config
  const wiring = new Wiring(plan)
  const layer = (config.preNorm ? preLayers : postLayers)[config.activation]
  if (!plan.covers(layer.name)) {
    throw usageError('plan.model', `plan ${plan.name} has nothing to say about ${layer.name}, the layers of this encoder`, {
      hint: `its activation is ${config.activation}; choose a plan made for it, such as ${defaultPlan}`,
    })
  }
  const memory: Result = { name: 'memory', padded: true }
  const hidden = (at: number): Result => (at === encoder.layers && !config.finalNorm ? memory : { name: `hidden${at}` })
  const embeddings = seq2seqEmbeddings('encoder')
  wiring.apply('embeddings', embedScaled, { ids: 'ids' }, embeddings, { hidden: hidden(0) }, { factor: config.embedScale })
  const attrs = { eps, scale: 1 / Math.sqrt(encoder.headDim) }
  for (let i = 0; i < encoder.layers; i++) {
    const inputs = { x: hidden(i).name, lengths: 'lengths' }
    wiring.apply(`layer${i}`, layer, inputs, encoderLayerNames(i), { hidden: hidden(i + 1) }, attrs)
  }
  if (config.finalNorm) {
    const last = { x: hidden(encoder.layers).name }
    wiring.apply('norm', finalNorm, last, seq2seqFinalNorm('encoder'), { hidden: memory }, { eps })
  }
  const outputs = Array.from({ length: decoder.layers }, (_, i) => {
    const { keys, values } = memoryOutputs(i)
    const results = { keys: { name: keys }, values: { name: values } }
    wiring.apply(`memory${i}`, memoryKeysValues, { x: memory.name }, memoryNames(i), results)
    return [keys, values]
  })
  return wiring.assembly([memory.name, ...outputs.flat()])
}
