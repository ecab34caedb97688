/** Sequences of tokens as a caller gives them, checked before anything runs. */
import { usageError } from '../../errors.js'

export interface TokenCase {
  readonly inputIds: readonly number[]
  /** Which of the parts of a case each token is of, such as a question and its text; all of the first where undefined. */
  readonly typeIds?: readonly number[] | undefined
}

/** Tokens of the longest case. */
export const longestOf = (cases: readonly TokenCase[]): number =>
  cases.reduce((longest, { inputIds }) => Math.max(longest, inputIds.length), 0)

/** What a model takes. */
export interface CaseLimits {
  readonly positions: number
  readonly vocab: number
  readonly tokenTypes?: number
  /** Where it is not 0, the padding token is at a position of its own, and can be no token of a sequence. */
  readonly firstPosition?: number
  readonly padToken?: number
}

/** @throws usage `run.batch`, `run.chunk` for what is no positive integer */
export function expectPositive(what: 'batch' | 'chunk', count: number): void {
  if (Number.isSafeInteger(count) && count >= 1) return
  throw usageError(`run.${what}`, `${what} is ${count}, expected a positive integer`)
}

/** @throws usage `run.batch`, `run.sequence`, `run.token`, `run.type` naming the case, the value and what is allowed */
export function checkCases(config: CaseLimits, cases: readonly TokenCase[], batch: number): void {
  expectPositive('batch', batch)
  if (cases.length === 0) throw usageError('run.batch', 'the batch is empty: there is no case to run')
  for (const [i, { inputIds, typeIds }] of cases.entries()) {
    if (inputIds.length === 0) throw usageError('run.sequence', `case ${i} is empty: a sequence has at least one token`)
    if (inputIds.length > config.positions) {
      throw usageError('run.sequence', `case ${i} has ${inputIds.length} tokens, the model has ${config.positions} positions`, {
        hint: 'split the text into shorter pieces, or say how it is cut with --truncate',
      })
    }
    const at = inputIds.findIndex((id) => !Number.isInteger(id) || id < 0 || id >= config.vocab)
    if (at >= 0) {
      throw usageError('run.token', `case ${i}: token id ${inputIds[at]} at position ${at} is not in [0, ${config.vocab})`, {
        hint: 'the tokenizer may belong to another model',
      })
    }
    const padding = (config.firstPosition ?? 0) > 0 ? inputIds.indexOf(config.padToken ?? -1) : -1
    if (padding >= 0) {
      throw usageError('run.token', `case ${i}: token id ${inputIds[padding]} at position ${padding} is the padding token`, {
        hint: 'give sequences without padding: this model counts positions by the other tokens',
      })
    }
    if (typeIds !== undefined) checkTypes(i, inputIds.length, typeIds, config.tokenTypes ?? 0)
  }
}

function checkTypes(index: number, length: number, typeIds: readonly number[], types: number): void {
  if (types === 0) throw usageError('run.type', `case ${index} has types of tokens, and the model has none`)
  if (typeIds.length !== length) {
    throw usageError('run.type', `case ${index} has ${length} tokens and types of ${typeIds.length}`, {
      hint: 'give one type for each token',
    })
  }
  const at = typeIds.findIndex((type) => !Number.isInteger(type) || type < 0 || type >= types)
  if (at >= 0) throw usageError('run.type', `case ${index}: type ${typeIds[at]} at position ${at} is not in [0, ${types})`)
}
