/**
 * Checks names given by a caller without types against known names. An unknown name is refused, with the name that was probably meant.
 * Applies to declarations of the language and to options of calls.
 */
import { type ErrorCode, usageError, type Written } from './errors.js'

/** Largest edit distance at which a name is suggested for another. */
const mostEdits = 2

/** Largest number of names in a hint. */
const mostNames = 32

const shortened = (names: readonly string[]): string =>
  names.length <= mostNames ? names.join(', ') : `${names.slice(0, mostNames).join(', ')} and ${names.length - mostNames} more`

/** `inputs are x, gamma`, or that there are none. */
export const listed = (what: string, names: readonly string[]): string =>
  names.length === 0 ? `there are no ${what}` : `${what} are ${shortened(names)}`

/** Hint with the name that was probably meant, and a list of known names. */
export function nameHint(what: string, names: readonly string[], given: string): string {
  const close = names
    .map((name) => ({ name, edits: editsBetween(given.toLowerCase(), name.toLowerCase()) }))
    .filter(({ name, edits }) => edits <= Math.min(mostEdits, name.length - 1))
    .sort((a, b) => a.edits - b.edits)[0]
  return close === undefined ? listed(what, names) : `did you mean ${close.name}? ${listed(what, names)}`
}

/** Levenshtein distance: characters to insert, remove or replace. */
function editsBetween(a: string, b: string): number {
  let above = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = (above[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      row.push(Math.min(replaced, (above[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1))
    }
    above = row
  }
  return above[b.length] ?? 0
}

/** Description of an object in messages: `op rms_norm`, and `part` or `option` for one of its keys. */
interface Owner {
  readonly at: string
  readonly what: string
  /** Source location of the object; called only for a refusal. */
  readonly written?: () => Written
}

/** @throws usage `code` for the first key of an object that is not among the names */
export function expectKnown(code: ErrorCode, { at, what, written }: Owner, names: readonly string[], given: object): void {
  const unknown = Object.keys(given).find((name) => !names.includes(name))
  if (unknown === undefined) return
  throw usageError(code, `${at} has no ${what} ${unknown}`, {
    hint: nameHint(`${what}s`, names, unknown),
    ...(written === undefined ? {} : { about: { written: written() } }),
  })
}
