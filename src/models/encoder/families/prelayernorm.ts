/** RoBERTa with norms in front of attention and inner networks (Ott et al. 2019), and one behind the last layer. */
import { linearAs, norm, normAs } from '../../parts/weight_names.js'
import type { EncoderFamily } from './family.js'
import { roberta } from './roberta.js'

export const prelayernorm: EncoderFamily = {
  ...roberta,
  classes: { 'roberta-prelayernorm': 'RobertaPreLayerNorm' },
  prefix: 'roberta_prelayernorm.',
  layer(layer) {
    const at = `encoder.layer.${layer}`
    return {
      ...normAs('attention', `${at}.attention.LayerNorm`),
      ...linearAs('query', `${at}.attention.self.query`),
      ...linearAs('key', `${at}.attention.self.key`),
      ...linearAs('value', `${at}.attention.self.value`),
      ...linearAs('projection', `${at}.attention.output.dense`),
      ...normAs('output', `${at}.intermediate.LayerNorm`),
      ...linearAs('fc1', `${at}.intermediate.dense`),
      ...linearAs('fc2', `${at}.output.dense`),
    }
  },
  norms: 'pre',
  norm: norm('LayerNorm'),
}
