/** Cases as token ids, for verbs that run models on them. */

import { usageError } from '../errors.js'
import type { TokenCase } from '../models/parts/token_cases.js'
import { loadTokenizer } from '../text/tokenizer.js'
import type { Truncation } from '../text/truncation.js'
import type { Case } from './cases.js'

/** What texts become for a model. */
export interface Tokenising {
  /** How many types of tokens the model tells apart. */
  readonly tokenTypes?: number
  /** How texts that are too long are cut; they stay as they are where undefined. */
  readonly truncate?: Truncation | undefined
}

/**
 * Cases as token ids; texts go through the model's tokenizer. Of a pair, types are given to a model that has several.
 * @throws usage `tokenizer.*`, `run.truncate`; `run.case` for messages
 */
export async function tokenIds(
  model: string,
  cases: readonly Case[],
  { tokenTypes = 0, truncate }: Tokenising = {},
): Promise<TokenCase[]> {
  const tokenizer = cases.some((item) => 'text' in item) ? await loadTokenizer(model) : undefined
  return cases.map((item, i) => {
    if ('messages' in item) {
      throw usageError('run.case', `case ${i} has messages, which models with a chat template read`, {
        hint: 'give a text or token ids',
      })
    }
    if (!('text' in item)) return { inputIds: item.input_ids, typeIds: item.token_type_ids, attentionMask: item.attention_mask }
    const { ids = [], types } = tokenizer?.encode(item.text, { pair: item.pair, truncate }) ?? {}
    return { inputIds: ids, typeIds: tokenTypes > 1 ? types : undefined }
  })
}
