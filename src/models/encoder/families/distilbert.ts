/** DistilBERT (Sanh et al. 2019): BERT without token types and without a pooler, with its own field and tensor names. */
import { z } from 'zod'
import { checkFields, keysOf, size } from '../../../checkpoint/config_file.js'
import { activations } from '../../parts/activations.js'
import { linear, linearAs, norm, normAs } from '../../parts/weight_names.js'
import type { EncoderFamily } from './family.js'

const schema = z.looseObject({
  vocab_size: size,
  dim: size,
  n_layers: size,
  n_heads: size,
  hidden_dim: size,
  max_position_embeddings: size,
  activation: z.enum(keysOf(activations)),
  pad_token_id: z.int().nonnegative().nullish(),
})

/** Epsilon of the layer norms, which configurations do not state. */
const eps = 1e-12

export const distilbert: EncoderFamily = {
  classes: { distilbert: 'DistilBert' },
  fields(value, name) {
    const config = checkFields(schema, value, name)
    return {
      vocab: config.vocab_size,
      hidden: config.dim,
      layers: config.n_layers,
      heads: config.n_heads,
      inner: config.hidden_dim,
      positions: config.max_position_embeddings,
      firstPosition: 0,
      tokenTypes: 0,
      eps,
      activation: activations[config.activation],
      padToken: config.pad_token_id ?? 0,
    }
  },
  prefix: 'distilbert.',
  embeddings: {
    words: 'embeddings.word_embeddings.weight',
    positions: 'embeddings.position_embeddings.weight',
    ...norm('embeddings.LayerNorm'),
  },
  layer(layer) {
    const at = `transformer.layer.${layer}`
    return {
      ...linearAs('query', `${at}.attention.q_lin`),
      ...linearAs('key', `${at}.attention.k_lin`),
      ...linearAs('value', `${at}.attention.v_lin`),
      ...linearAs('projection', `${at}.attention.out_lin`),
      ...normAs('attention', `${at}.sa_layer_norm`),
      ...linearAs('fc1', `${at}.ffn.lin1`),
      ...linearAs('fc2', `${at}.ffn.lin2`),
      ...normAs('output', `${at}.output_layer_norm`),
    }
  },
  norms: 'post',
  pooling: 'relu',
  sequence: { ...linearAs('pooler', 'pre_classifier'), ...linear('classifier') },
  tokens: linear('classifier'),
  span: linear('qa_outputs'),
}
