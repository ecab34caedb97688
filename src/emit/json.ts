/** JSON for people and diffs: what fits a line stands on one, so that an entry that changes is a line that changes. */
const width = 140

/** The value as JSON text. Objects and arrays that do not fit a line are broken into one line a member. */
export function jsonText(value: unknown, indent = ''): string {
  const line = JSON.stringify(value)
  if (typeof value !== 'object' || value === null || indent.length + line.length <= width) return line
  const inner = `${indent}  `
  const [open, close, members] = Array.isArray(value)
    ? ['[', ']', value.map((item: unknown) => `${inner}${jsonText(item, inner)}`)]
    : ['{', '}', present(value).map(([key, item]) => `${inner}${JSON.stringify(key)}: ${jsonText(item, inner)}`)]
  return `${open}\n${members.join(',\n')}\n${indent}${close}`
}

/** The members JSON writes: those with a value. */
const present = (value: object): (readonly [string, unknown])[] =>
  Object.entries(value).filter(([, item]: readonly [string, unknown]) => item !== undefined)
