/** Cases as token ids, for verbs that run models on them. */

import { usageError } from '../errors.js'
import type { TokenCase } from '../models/parts/token_cases.js'
import { loadTokenizer } from '../text/tokenizer.js'
import type { Truncation } from '../text/truncation.js'
import type { Case } from './cases.js'

/** Tokenisation for a model. */
export interface Tokenising {
  /** Number of token types of the model. */
  readonly tokenTypes?: number
  /** Truncation of texts that are too long; none if undefined. */
  readonly truncate?: Truncation | undefined
}

/**
 * Converts cases to token ids; texts go through the model's tokenizer. Types of a pair are set for a model with several types.
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
      throw usageError(
        'run.case',
        `case ${i}: expected a text or token ids, got messages, which need a model with a chat template`,
        {
          hint: 'give a text or token ids',
        },
      )
    }
    if (!('text' in item)) return { inputIds: item.input_ids, typeIds: item.token_type_ids, attentionMask: item.attention_mask }
    const { ids = [], types } = tokenizer?.encode(item.text, { pair: item.pair, truncate }) ?? {}
    return { inputIds: ids, typeIds: tokenTypes > 1 ? types : undefined }
  })
}
