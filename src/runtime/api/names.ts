/** Refusals of names: what there is, and which of it was probably meant. */

/** How many edits apart two names may be for one to be offered for the other. */
const mostEdits = 2

/** `inputs are x, gamma`, or that there are none. */
export const listed = (what: string, names: readonly string[]): string =>
  names.length === 0 ? `there are no ${what}` : `${what} are ${shortened(names)}`

/** So many names are read by nobody. */
const mostNames = 32

const shortened = (names: readonly string[]): string =>
  names.length <= mostNames ? names.join(', ') : `${names.slice(0, mostNames).join(', ')} and ${names.length - mostNames} more`

/** The name that was probably meant, or a list of those there are: a hint. */
export function nameHint(what: string, names: readonly string[], given: string): string {
  const close = names
    .map((name) => ({ name, edits: editsBetween(given.toLowerCase(), name.toLowerCase()) }))
    .filter(({ name, edits }) => edits <= Math.min(mostEdits, name.length - 1))
    .sort((a, b) => a.edits - b.edits)[0]
  return close === undefined ? listed(what, names) : `did you mean ${close.name}? ${listed(what, names)}`
}

/** Characters to insert, remove or replace to make one of the other (Levenshtein). */
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
