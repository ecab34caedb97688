/**
 * Plans found by the cost model: fusion groups are searched for an H200 when CUDA is generated. Packing and stacks are given, as in `best-encoder`,
 * and packing has to be the same for every graph of a model.
 */
import { autoPlan } from 'heddle'
import { embeddings, untypedEmbeddings } from '../graphs/embeddings.js'
import { encoderLayerGelu, encoderLayerGeluTanh, encoderLayerRelu } from '../graphs/encoder_layer.js'
import { pairLayers } from '../graphs/encoder_layers.js'
import { hiddenStates, pooler, tokenClassifier } from '../graphs/heads.js'

const target = { device: 'h200', packed: { batch: 'b', seq: 's', tokens: 't', lengths: 'lengths' } }
const stacked = { qkv: ['query', 'key', 'value'], qkvBias: ['queryBias', 'keyBias', 'valueBias'] } as const

export const auto = [
  autoPlan('auto', encoderLayerGelu, { ...target, stacked }),
  autoPlan('auto', encoderLayerGeluTanh, { ...target, stacked }),
  autoPlan('auto', encoderLayerRelu, { ...target, stacked }),
  autoPlan('auto', pairLayers.post.gelu, { ...target, stacked }),
  autoPlan('auto', pairLayers.post.gelu_tanh, { ...target, stacked }),
  autoPlan('auto', pairLayers.post.relu, { ...target, stacked }),
  autoPlan('auto', embeddings, target),
  autoPlan('auto', untypedEmbeddings, target),
  autoPlan('auto', tokenClassifier, target),
  autoPlan('auto', pooler, target),
  autoPlan('auto', hiddenStates, target),
]
