/** JSON for people and diffs: a value that fits on one line is written on one line, so that a changed entry is a changed line. */
const width = 140

/** The value as JSON. Objects and arrays that do not fit on a line are broken into one line per member. */
export function jsonText(value: unknown, indent = ''): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const isList = Array.isArray(value)
  const [open, close] = isList ? '[]' : '{}'
  const inner = `${indent}  `
  // Each member is formatted once: if the whole fits on a line, so does each member.
  const members = isList
    ? value.map((item: unknown) => ({ name: '', text: jsonText(item, inner) }))
    : present(value).map(([key, item]) => ({ name: `${JSON.stringify(key)}:`, text: jsonText(item, inner) }))
  const length = members.reduce((sum, { name, text }) => sum + name.length + text.length + 1, 1)
  const fits = indent.length + Math.max(length, 2) <= width && members.every(({ text }) => !text.includes('\n'))
  if (fits) return `${open}${members.map(({ name, text }) => name + text).join(',')}${close}`
  const lines = members.map(({ name, text }) => `${inner}${name}${isList ? '' : ' '}${text}`)
  return `${open}\n${lines.join(',\n')}\n${indent}${close}`
}

/** Members that JSON contains: those with a value. */
const present = (value: object): (readonly [string, unknown])[] =>
  Object.entries(value).filter(([, item]: readonly [string, unknown]) => item !== undefined)
