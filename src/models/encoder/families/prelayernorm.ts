/** RoBERTa with norms before attention and feed-forward networks (Ott et al. 2019), and one after the last layer. */
import { norm, normAs } from '../../parts/weight_names.js'
import type { EncoderFamily } from './family.js'
import { roberta } from './roberta.js'

export const prelayernorm: EncoderFamily = {
  ...roberta,
  classes: { 'roberta-prelayernorm': 'RobertaPreLayerNorm' },
  prefix: 'roberta_prelayernorm.',
  layer: (layer) => ({
    ...roberta.layer(layer),
    ...normAs('attention', `encoder.layer.${layer}.attention.LayerNorm`),
    ...normAs('output', `encoder.layer.${layer}.intermediate.LayerNorm`),
  }),
  norms: 'pre',
  norm: norm('LayerNorm'),
}
