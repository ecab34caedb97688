/**
 * This project's own encoder, `best-encoder` for BERT and as part of `best-decoder` for encoder-decoder models. Tokens are packed from the embedding
 * to the output. Query, key and value are one matmul with its bias in the epilogue. Attention is one kernel that reads packed rows. The activation is
 * in the epilogue of the first inner matmul.
 */
import { plan } from 'heddle'
import { embeddings, untypedEmbeddings } from '../graphs/embeddings.js'
import { everyLayer, type LayerForm } from '../graphs/encoder_layers.js'
import { firstPooling, hiddenStates, lastPooling, meanPooling, pooler, tokenClassifier } from '../graphs/heads.js'
import { embedScaled, finalNorm, memoryKeysValues } from '../graphs/seq2seq_encoder.js'
import { attentionNodes } from './attention_nodes.js'

const packed = { batch: 'b', seq: 's', tokens: 't', lengths: 'lengths' }

/**
 * The layer's plan, for any position of its norms: they are kernels of their own.
 * @param rest other parts of the plan than its groups, of which those with a matmul are `matmul_bias`, `matmul_bias_residual` and
 * `matmul_bias_${activation}`
 */
export const over = (name: string, { layer, activation, mask }: LayerForm, rest: { readonly library?: readonly string[] } = {}) =>
  plan(name, layer, {
    ...rest,
    packed,
    stacked: { qkv: ['query', 'key', 'value'], qkvBias: ['queryBias', 'keyBias', 'valueBias'] },
    groups: {
      matmul_bias: ['qkv', 'qkvBias'],
      [`attention${mask}`]: attentionNodes,
      matmul_bias_residual: [
        ['projection', 'projectionBias', 'attentionResidual'],
        ['fc2', 'fc2Bias', 'outputResidual'],
      ],
      [`matmul_bias_${activation}`]: ['fc1', 'fc1Bias', 'fc1Activation'],
    },
  })

/** Plans before and after the layers, over packed tokens. */
export const aroundLayers = (name: string) => [
  plan(name, embeddings, {
    packed,
    groups: { embed_layer_norm: ['words', 'types', 'typed', 'placed.unpack', 'placed', 'placed.pack', 'norm'] },
  }),
  plan(name, untypedEmbeddings, {
    packed,
    groups: { embed_untyped_layer_norm: ['words', 'placed.unpack', 'placed', 'placed.pack', 'norm'] },
  }),
  plan(name, tokenClassifier, { packed, groups: { bias_argmax: ['classesBias', 'logits', 'labels'] } }),
  plan(name, pooler, {
    packed,
    groups: { unpack_first_token: ['first.unpack', 'first'], bias_tanh: ['denseBias', 'activated', 'pooled'] },
  }),
  plan(name, finalNorm, { packed, groups: {} }),
  plan(name, hiddenStates, { packed, groups: {} }),
  plan(name, meanPooling, { packed, groups: {} }),
  plan(name, firstPooling, { packed, groups: { unpack_first_row: ['first.unpack', 'first', 'rows'] } }),
  plan(name, lastPooling, { packed, groups: { unpack_last_row: ['last.unpack', 'last', 'rows'] } }),
]

export const bestEncoder = [...everyLayer.map((form) => over('best-encoder', form)), ...aroundLayers('best-encoder')]

/** The encoder's part of `best-decoder`. Keys and values of the memory are computed for tokens alone, and stored padded. */
export const bestSeq2seqEncoder = [
  ...everyLayer.map((form) => over('best-decoder', form)),
  plan('best-decoder', embedScaled, {
    packed,
    groups: { embed_scaled: ['words', 'scaled', 'placed.unpack', 'placed', 'placed.pack'] },
  }),
  plan('best-decoder', finalNorm, { packed, groups: {} }),
  plan('best-decoder', memoryKeysValues, {
    packed,
    stacked: { kv: ['key', 'value'], kvBias: ['keyBias', 'valueBias'] },
    groups: {
      matmul_bias: ['kv', 'kvBias'],
      unpack_split_kv: ['keyBias', 'valueBias', 'keyHeads.unpack', 'valueHeads.unpack', 'keyHeads', 'valueHeads'],
    },
  }),
]
