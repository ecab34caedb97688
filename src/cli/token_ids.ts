/** Cases as token ids, for verbs that run models on them. */
import { loadTokenizer } from '../models/files/tokenizer.js'
import type { Case } from './cases.js'

/** Cases as token ids; texts go through the model's tokenizer. */
export async function tokenIds(model: string, cases: readonly Case[]): Promise<{ inputIds: readonly number[] }[]> {
  const tokenizer = cases.some((item) => 'text' in item) ? await loadTokenizer(model) : undefined
  return cases.map((item) => ({ inputIds: 'text' in item ? (tokenizer?.encode(item.text).ids ?? []) : item.input_ids }))
}
