/** Token sequences from a caller, checked before anything runs. */
import { shown } from '../../checkpoint/safetensors_header.js'
import { usageError } from '../../errors.js'
import { nameHint } from '../../runtime/api/names.js'

export interface TokenCase {
  readonly inputIds: readonly number[]
  /** Token type (segment) ids: the part of the case each token belongs to, such as a question and its text. All 0 if undefined. */
  readonly typeIds?: readonly number[] | undefined
  /**
   * Attention mask, for models with an encoder: 1 keeps a key, 0 removes it. One number per token applies to all queries; one row per
   * token applies to that query. A query without keys gets the mean of all values. A decoder attends to the tokens that some token attends.
   */
  readonly attentionMask?: readonly number[] | readonly (readonly number[])[] | undefined
}

/** Length of the longest case, in tokens. */
export const longestOf = (cases: readonly TokenCase[]): number =>
  cases.reduce((longest, { inputIds }) => Math.max(longest, inputIds.length), 0)

/** Limits of a model on its cases. */
export interface CaseLimits {
  readonly positions: number
  readonly vocab: number
  readonly tokenTypes?: number
  /** First position of a token. If it is not 0, the padding token has its own position and may not occur in a sequence. */
  readonly firstPosition?: number
  readonly padToken?: number
  /** True if the model continues texts, which are never truncated. */
  readonly continued?: boolean
  /** Hint for longer cases that replaces the general one. */
  readonly beyond?: string | undefined
}

/** @throws usage `run.batch`, `run.chunk` unless `count` is a positive integer */
export function expectPositive(what: 'batch' | 'chunk', count: number): void {
  if (Number.isSafeInteger(count) && count >= 1) return
  throw usageError(`run.${what}`, `${what} is ${count}, expected a positive integer`)
}

/** @throws usage `run.batch`, `run.case`, `run.mask`, `run.sequence`, `run.token`, `run.type` naming the case, the value and the allowed range */
export function checkCases(config: CaseLimits, cases: readonly TokenCase[], batch: number): void {
  expectPositive('batch', batch)
  expectForm(cases)
  if (cases.length === 0) throw usageError('run.batch', 'the batch is empty, expected at least one case')
  for (const [i, { inputIds, typeIds, attentionMask }] of cases.entries()) {
    if (attentionMask !== undefined)
      throw usageError('run.mask', `case ${i} has an attention mask, which only models with an encoder support`, {
        hint: 'leave out the mask, and the tokens that it removes',
      })
    if (inputIds.length === 0) throw usageError('run.sequence', `case ${i} is empty: a sequence has at least one token`)
    if (inputIds.length > config.positions) {
      throw usageError('run.sequence', `case ${i} has ${inputIds.length} tokens, the model has ${config.positions} positions`, {
        hint:
          config.beyond ??
          (config.continued === true
            ? 'shorten the prompt: the continuation must fit too'
            : 'split the text into shorter pieces, or choose how to truncate it with --truncate'),
      })
    }
    expectNumbers(i, 'inputIds', inputIds)
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

const fields = ['inputIds', 'typeIds', 'attentionMask'] as const
const example = 'for example [{ inputIds: [1, 2, 3] }]'

/** Describes a value's kind, for messages. */
function kindOf(value: unknown): string {
  if (value === null || value === undefined) return `${value}`
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object') return value.constructor === Object ? 'an object' : `of type ${value.constructor?.name}`
  return `the ${typeof value} ${typeof value === 'string' ? shown(JSON.stringify(value)) : String(value)}`
}

/** Untyped callers may pass anything. @throws usage `run.batch`, `run.case` naming the case, the value and the expected form */
function expectForm(cases: unknown): void {
  if (!Array.isArray(cases)) throw usageError('run.batch', `cases are ${kindOf(cases)}, expected an array`, { hint: example })
  for (const [i, given] of cases.entries()) {
    const item: unknown = given
    if (typeof item !== 'object' || item === null || Array.isArray(item)) {
      throw usageError('run.case', `case ${i} is ${kindOf(item)}, expected an object with inputIds`, { hint: example })
    }
    const unknown = Object.keys(item).find((name) => !fields.some((field) => field === name))
    if (unknown !== undefined) {
      throw usageError('run.case', `case ${i} has an unknown field ${shown(unknown)}`, {
        hint: nameHint('fields', fields, unknown),
      })
    }
    for (const [name, value] of Object.entries({ inputIds: undefined, ...item })) {
      if (Array.isArray(value) || (name !== 'inputIds' && value === undefined)) continue
      throw usageError('run.case', `case ${i}: ${name} is ${kindOf(value)}, expected an array of integers`, { hint: example })
    }
  }
}

/** @throws usage `run.token` for an id that is not a number */
function expectNumbers(index: number, name: string, ids: readonly unknown[]): void {
  const at = ids.findIndex((id) => typeof id !== 'number')
  if (at < 0) return
  throw usageError('run.token', `case ${index}: ${name}[${at}] is ${kindOf(ids[at])}, expected a number`, { hint: example })
}

function checkTypes(index: number, length: number, typeIds: readonly number[], types: number): void {
  if (types === 0) throw usageError('run.type', `case ${index} has token types, and the model has none`)
  if (typeIds.length !== length) {
    throw usageError('run.type', `case ${index} has ${length} tokens and ${typeIds.length} token types`, {
      hint: 'give one type for each token',
    })
  }
  const at = typeIds.findIndex((type) => !Number.isInteger(type) || type < 0 || type >= types)
  if (at >= 0) throw usageError('run.type', `case ${index}: type ${typeIds[at]} at position ${at} is not in [0, ${types})`)
}
