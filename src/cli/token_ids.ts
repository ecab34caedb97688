/** Cases as token ids, for verbs that run models on them. */

import type { TokenCase } from '../models/files/token_cases.js'
import { loadTokenizer } from '../models/files/tokenizer.js'
import type { Case } from './cases.js'

/** Cases as token ids; texts go through the model's tokenizer. */
export async function tokenIds(model: string, cases: readonly Case[]): Promise<TokenCase[]> {
  const tokenizer = cases.some((item) => 'text' in item) ? await loadTokenizer(model) : undefined
  return cases.map((item) =>
    'text' in item
      ? { inputIds: tokenizer?.encode(item.text).ids ?? [] }
      : { inputIds: item.input_ids, typeIds: item.token_type_ids },
  )
}
