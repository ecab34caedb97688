/**
 * BERT (Devlin et al. 2018): learned positions, token types, a pooler of the first token. QDQBert is BERT with quantisers, whose states
 * calibration reads.
 */
import { z } from 'zod'
import { checkFields, epsilon, keysOf, size } from '../../../checkpoint/config_file.js'
import { activations } from '../../parts/activations.js'
import { linear, linearAs, norm, normAs } from '../../parts/weight_names.js'
import type { EncoderFamily, FamilyFields } from './family.js'

const schema = z.looseObject({
  vocab_size: size,
  hidden_size: size,
  num_hidden_layers: size,
  num_attention_heads: size,
  intermediate_size: size,
  max_position_embeddings: size,
  type_vocab_size: size.default(2),
  layer_norm_eps: epsilon.default(1e-12),
  hidden_act: z.enum(keysOf(activations)),
  position_embedding_type: z.literal('absolute').default('absolute'),
  is_decoder: z.literal(false).default(false),
  pad_token_id: z.int().nonnegative().nullish(),
})

/** The fields of BERT, shared by other families. @param padToken default if the configuration has none */
export function bertFields(value: unknown, name: string, padToken: number): FamilyFields {
  const config = checkFields(schema, value, name)
  return {
    vocab: config.vocab_size,
    hidden: config.hidden_size,
    layers: config.num_hidden_layers,
    heads: config.num_attention_heads,
    inner: config.intermediate_size,
    positions: config.max_position_embeddings,
    firstPosition: 0,
    tokenTypes: config.type_vocab_size,
    eps: config.layer_norm_eps,
    activation: activations[config.hidden_act],
    padToken: config.pad_token_id ?? padToken,
  }
}

export const bert: EncoderFamily = {
  classes: { bert: 'Bert', qdqbert: 'QDQBert' },
  fields: (config, name) => bertFields(config, name, 0),
  prefix: 'bert.',
  embeddings: {
    words: 'embeddings.word_embeddings.weight',
    types: 'embeddings.token_type_embeddings.weight',
    positions: 'embeddings.position_embeddings.weight',
    ...norm('embeddings.LayerNorm'),
  },
  layer(layer) {
    const at = `encoder.layer.${layer}`
    return {
      ...linearAs('query', `${at}.attention.self.query`),
      ...linearAs('key', `${at}.attention.self.key`),
      ...linearAs('value', `${at}.attention.self.value`),
      ...linearAs('projection', `${at}.attention.output.dense`),
      ...normAs('attention', `${at}.attention.output.LayerNorm`),
      ...linearAs('fc1', `${at}.intermediate.dense`),
      ...linearAs('fc2', `${at}.output.dense`),
      ...normAs('output', `${at}.output.LayerNorm`),
    }
  },
  pooler: linear('pooler.dense'),
  norms: 'post',
  pooling: 'tanh',
  sequence: { ...linearAs('pooler', 'pooler.dense'), ...linear('classifier') },
  tokens: linear('classifier'),
  span: linear('qa_outputs'),
}
