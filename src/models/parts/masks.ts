/**
 * Attention masks of cases that an encoder reads. A key mask whose ones come first is padding: the masked tokens are cut off, and the case runs
 * without a mask, by its length. In any other key mask, tokens after the last kept one are cut off too. All other masks become pair masks.
 */
import { usageError } from '../../errors.js'
import type { TokenCase } from './token_cases.js'

/** A case without trailing padding. */
export interface MaskedCase {
  readonly item: TokenCase
  /** One byte per query and key, row by row: 1 if the query attends to the key. Undefined if all attend to all. */
  readonly pairs: Uint8Array | undefined
}

/**
 * Separates the masks from cases. Other errors in a case are left to `checkCases`.
 * @throws usage `run.mask` naming the case for a mask of another length, or with values other than 0 and 1
 */
export const withoutMasks = (cases: readonly TokenCase[]): readonly MaskedCase[] => cases.map(withoutMask)

const plain = (item: TokenCase): MaskedCase => ({ item, pairs: undefined })

function withoutMask(given: TokenCase, index: number): MaskedCase {
  const isCase = typeof given === 'object' && given !== null && Array.isArray(given.inputIds)
  if (!isCase || !Array.isArray(given.attentionMask)) return plain(given)
  const { attentionMask: mask, ...item } = given
  const length = item.inputIds.length
  if (mask.length !== length) throw ofOtherLength(index, `has ${length} tokens and a mask of ${mask.length}`)
  if (length === 0) return plain(item)
  const rows = rowsOf(mask, index)
  const isOfKeys = rows.every((row) => row === rows[0] || row.every((kept, key) => kept === rows[0]?.[key]))
  if (!isOfKeys) return { item, pairs: Uint8Array.from(rows.flat()) }
  const [keys = []] = rows
  // If no key is kept, no token counts as padding: each query gets the mean of all values.
  const kept = keys.lastIndexOf(1) + 1 || length
  const { typeIds } = item
  const cut = {
    ...item,
    inputIds: item.inputIds.slice(0, kept),
    ...(Array.isArray(typeIds) && typeIds.length === length ? { typeIds: typeIds.slice(0, kept) } : {}),
  }
  const left = keys.slice(0, kept)
  if (left.every((key) => key === 1)) return plain(cut)
  return { item: cut, pairs: Uint8Array.from(left.flatMap(() => left)) }
}

/** The mask as one row per query. */
function rowsOf(mask: readonly unknown[], index: number): readonly (readonly number[])[] {
  if (!mask.some(Array.isArray)) {
    const keys = numbersOf(mask, index, 'attentionMask')
    return mask.map(() => keys)
  }
  return mask.map((row, query) => {
    const name = `attentionMask[${query}]`
    if (!Array.isArray(row)) throw refuse(index, `${name} is not a row, but others are`)
    if (row.length !== mask.length) throw ofOtherLength(index, `has ${mask.length} tokens, and ${name} has ${row.length}`)
    return numbersOf(row, index, name)
  })
}

function numbersOf(row: readonly unknown[], index: number, name: string): readonly number[] {
  const at = row.findIndex((kept) => kept !== 0 && kept !== 1)
  if (at >= 0) throw refuse(index, `${name}[${at}] is ${JSON.stringify(row[at])}, expected 1 for a key that is kept, or 0`)
  return row as readonly number[]
}

const hint = 'give one number per token, or one row of numbers per token: 1 keeps a key, 0 removes it'
const refuse = (index: number, what: string): Error => usageError('run.mask', `case ${index}: ${what}`, { hint })
const ofOtherLength = (index: number, what: string): Error => usageError('run.mask', `case ${index} ${what}`, { hint })

/** @throws usage `run.mask` for a mask that removes every token: there is none to pool, or for a decoder to attend */
export function expectTokens(cases: readonly MaskedCase[]): void {
  const at = cases.findIndex((item) => keptTokens(item).length === 0)
  if (at < 0) return
  throw usageError('run.mask', `case ${at}: its mask removes every token`, { hint: 'keep at least one token' })
}

/** True if a case has a mask of pairs. */
export const hasPairs = (cases: readonly MaskedCase[]): boolean => cases.some(({ pairs }) => pairs !== undefined)

/** Tokens of a case that some token attends, in order. */
export function keptTokens({ item, pairs }: MaskedCase): readonly number[] {
  const tokens = item.inputIds.map((_, token) => token)
  return pairs === undefined ? tokens : tokens.filter((key) => tokens.some((query) => pairs[query * tokens.length + key] === 1))
}

/** Order of a batch's tokens, `seq` per case: kept tokens come first; rows beyond them hold 0. */
export function batchOrder(batch: readonly MaskedCase[], seq: number): Int32Array {
  const order = new Int32Array(batch.length * seq)
  for (const [at, item] of batch.entries()) order.set(keptTokens(item), at * seq)
  return order
}

/** Mask of a batch, `seq` rows and columns per case. All ones for a case without a mask: its length masks the padding. */
export function batchMask(batch: readonly MaskedCase[], seq: number): Uint8Array {
  const mask = new Uint8Array(batch.length * seq * seq)
  for (const [at, { item, pairs }] of batch.entries()) {
    const length = item.inputIds.length
    for (let row = 0; row < length; row++) {
      const start = (at * seq + row) * seq
      if (pairs === undefined) mask.fill(1, start, start + length)
      else mask.set(pairs.subarray(row * length, (row + 1) * length), start)
    }
  }
  return mask
}
