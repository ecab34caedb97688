/** Sequences of tokens as a caller gives them, checked before anything runs. */
import { usageError } from '../../errors.js'

export interface TokenCase {
  readonly inputIds: readonly number[]
}

/** Tokens of the longest case. */
export const longestOf = (cases: readonly TokenCase[]): number =>
  cases.reduce((longest, { inputIds }) => Math.max(longest, inputIds.length), 0)

/** @throws usage `run.batch`, `run.sequence`, `run.token` naming the case, the value and what is allowed */
export function checkCases(
  config: { readonly positions: number; readonly vocab: number },
  cases: readonly TokenCase[],
  batch: number,
): void {
  if (!Number.isSafeInteger(batch) || batch < 1) throw usageError('run.batch', `batch is ${batch}, expected a positive integer`)
  if (cases.length === 0) throw usageError('run.batch', 'the batch is empty: there is no case to run')
  for (const [i, { inputIds }] of cases.entries()) {
    if (inputIds.length === 0) throw usageError('run.sequence', `case ${i} is empty: a sequence has at least one token`)
    if (inputIds.length > config.positions) {
      throw usageError('run.sequence', `case ${i} has ${inputIds.length} tokens, the model has ${config.positions} positions`, {
        hint: 'split the text into shorter pieces',
      })
    }
    const at = inputIds.findIndex((id) => !Number.isInteger(id) || id < 0 || id >= config.vocab)
    if (at >= 0) {
      throw usageError('run.token', `case ${i}: token id ${inputIds[at]} at position ${at} is not in [0, ${config.vocab})`, {
        hint: 'the tokenizer may belong to another model',
      })
    }
  }
}
