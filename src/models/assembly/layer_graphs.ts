/** The graphs that models repeat, by what their configurations say: what a plan has to cover to run them. */
import { decoderLayers } from '../../../specs/graphs/decoder_layer.js'
import * as post from '../../../specs/graphs/encoder_layer.js'
import * as pre from '../../../specs/graphs/encoder_layer_pre.js'
import type { BertConfig } from '../files/config.js'
import type { Seq2seqConfig } from '../seq2seq/seq2seq_config.js'

const encoderLayers = {
  post: {
    gelu: post.encoderLayerGelu,
    gelu_tanh: post.encoderLayerGeluTanh,
    relu: post.encoderLayerRelu,
    silu: post.encoderLayerSilu,
  },
  pre: {
    gelu: pre.encoderLayerPreGelu,
    gelu_tanh: pre.encoderLayerPreGeluTanh,
    relu: pre.encoderLayerPreRelu,
    silu: pre.encoderLayerPreSilu,
  },
} as const

/** Names of the graphs that a BERT repeats. */
export const bertLayers = ({ activation }: Pick<BertConfig, 'activation'>): readonly string[] => [
  encoderLayers.post[activation].name,
]

/** Names of the graphs that an encoder-decoder model repeats. */
export function seq2seqLayers({ preNorm, activation }: Pick<Seq2seqConfig, 'preNorm' | 'activation'>): readonly string[] {
  const form = preNorm ? 'pre' : 'post'
  return [encoderLayers[form][activation].name, decoderLayers[form][activation].name]
}
