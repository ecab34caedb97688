/** Every encoder layer that ships, by where its norms stand and by the op in its inner network: what models choose from. */
import { encoderLayerGelu, encoderLayerGeluTanh, encoderLayerRelu, encoderLayerSilu } from './encoder_layer.js'
import { encoderLayerPreGelu, encoderLayerPreGeluTanh, encoderLayerPreRelu, encoderLayerPreSilu } from './encoder_layer_pre.js'

export const encoderLayers = {
  post: { gelu: encoderLayerGelu, gelu_tanh: encoderLayerGeluTanh, relu: encoderLayerRelu, silu: encoderLayerSilu },
  pre: { gelu: encoderLayerPreGelu, gelu_tanh: encoderLayerPreGeluTanh, relu: encoderLayerPreRelu, silu: encoderLayerPreSilu },
} as const
