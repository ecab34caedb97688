/**
 * RoBERTa (Liu et al. 2019), and XLM-RoBERTa and CamemBERT, which differ only in their tokenizers: BERT with positions that begin
 * after that of the padding token, and a sequence classifier with its own dense layer.
 */
import { usageError } from '../../../errors.js'
import { linear, linearAs } from '../../parts/weight_names.js'
import { bert, bertFields } from './bert.js'
import type { EncoderFamily } from './family.js'

export const roberta: EncoderFamily = {
  ...bert,
  classes: { roberta: 'Roberta', 'xlm-roberta': 'XLMRoberta', camembert: 'Camembert' },
  fields(config, name) {
    const fields = bertFields(config, name, 1)
    const firstPosition = fields.padToken + 1
    if (firstPosition < fields.positions) return { ...fields, firstPosition, positions: fields.positions - firstPosition }
    throw usageError(
      'config.field',
      `${name}: max_position_embeddings ${fields.positions} leaves no position after pad_token_id ${fields.padToken}`,
    )
  },
  prefix: 'roberta.',
  sequence: { ...linearAs('pooler', 'classifier.dense'), ...linear('classifier.out_proj') },
}
