/**
 * Finds keys that occur twice in one object of a JSON text. `JSON.parse` silently keeps the last one, so such a file is ambiguous. The text is
 * scanned by hand, because a regular expression needs stack for every character of a long string.
 */

/** A key that occurs twice in one object of a valid JSON text; undefined if there is none. */
export function duplicateKey(text: string): string | undefined {
  const scopes: Set<string>[] = []
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (character === '{') scopes.push(new Set())
    else if (character === '}') scopes.pop()
    else if (character === '"') {
      const end = endOfString(text, at)
      if (text[pastBlanks(text, end)] === ':') {
        const key = String(JSON.parse(text.slice(at, end)))
        const scope = scopes.at(-1)
        if (scope?.has(key)) return key
        scope?.add(key)
      }
      at = end - 1
    }
  }
  return undefined
}

/** Position after the closing quote of the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  let at = start + 1
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at + 1
}

function pastBlanks(text: string, start: number): number {
  let at = start
  while (text[at] === ' ' || text[at] === '\n' || text[at] === '\r' || text[at] === '\t') at++
  return at
}
