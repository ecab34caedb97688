/** JSON for people and diffs: what fits a line stands on one, so that an entry that changes is a line that changes. */
const width = 140

/** The value as JSON text. Objects and arrays that do not fit a line are broken into one line a member. */
export function jsonText(value: unknown, indent = ''): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const isList = Array.isArray(value)
  const [open, close] = isList ? '[]' : '{}'
  const inner = `${indent}  `
  // Each member's text is made once: where the whole fits a line, so does each of its members.
  const members = isList
    ? value.map((item: unknown) => ({ name: '', text: jsonText(item, inner) }))
    : present(value).map(([key, item]) => ({ name: `${JSON.stringify(key)}:`, text: jsonText(item, inner) }))
  const length = members.reduce((sum, { name, text }) => sum + name.length + text.length + 1, 1)
  const fits = indent.length + Math.max(length, 2) <= width && members.every(({ text }) => !text.includes('\n'))
  if (fits) return `${open}${members.map(({ name, text }) => name + text).join(',')}${close}`
  const lines = members.map(({ name, text }) => `${inner}${name}${isList ? '' : ' '}${text}`)
  return `${open}\n${lines.join(',\n')}\n${indent}${close}`
}

/** The members JSON writes: those with a value. */
const present = (value: object): (readonly [string, unknown])[] =>
  Object.entries(value).filter(([, item]: readonly [string, unknown]) => item !== undefined)
