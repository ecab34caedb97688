/** All shipped encoder layers, by the position of their norms and by the op in their inner network. Models choose from these. */
import type { GraphDecl } from 'heddle'
import {
  addedLayers,
  encoderLayerGelu,
  encoderLayerGeluTanh,
  encoderLayerRelu,
  encoderLayerSilu,
  pairLayers as pairLayersPost,
} from './encoder_layer.js'
import {
  encoderLayerPreGelu,
  encoderLayerPreGeluTanh,
  encoderLayerPreRelu,
  encoderLayerPreSilu,
  pairLayersPre,
} from './encoder_layer_pre.js'

export const encoderLayers = {
  post: { gelu: encoderLayerGelu, gelu_tanh: encoderLayerGeluTanh, relu: encoderLayerRelu, silu: encoderLayerSilu },
  pre: { gelu: encoderLayerPreGelu, gelu_tanh: encoderLayerPreGeluTanh, relu: encoderLayerPreRelu, silu: encoderLayerPreSilu },
} as const

/** The same layers with a mask over pairs of tokens. */
export const pairLayers = { post: pairLayersPost, pre: pairLayersPre } as const

export type EncoderNode = typeof encoderLayerGelu extends GraphDecl<infer N> ? N : never

/** Form of a layer, as parameter of plans over all layers. */
export interface LayerForm {
  readonly layer: GraphDecl<EncoderNode>
  readonly activation: string
  readonly norms: keyof typeof encoderLayers
  /** Suffix of kernels that mask scores. */
  readonly mask: '' | '_pairs' | '_added'
}

export const everyLayer: readonly LayerForm[] = [['', encoderLayers] as const, ['_pairs', pairLayers] as const].flatMap(
  ([mask, { post, pre }]) => [
    ...Object.entries(post).map(([activation, layer]): LayerForm => ({ layer, activation, norms: 'post', mask })),
    ...Object.entries(pre).map(([activation, layer]): LayerForm => ({ layer, activation, norms: 'pre', mask })),
  ],
)

/** Every form of FasterTransformer's plans: those layers, and post-LN layers with its arithmetic of masks. */
export const fasterTransformerLayers: readonly LayerForm[] = [
  ...everyLayer,
  ...Object.entries(addedLayers).map(([activation, layer]): LayerForm => ({ layer, activation, norms: 'post', mask: '_added' })),
]
