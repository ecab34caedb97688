/** Values of a template as written by Python's `str` and `repr`. */

/** A value in the form of the interpreter. */
export interface TemplateValue {
  readonly type: string
  readonly value: unknown
  toString(): string
}

/** A float as `repr` writes it: with a point, or with an exponent of at least two digits if it is large or small. */
function floatText(value: number): string {
  if (Number.isNaN(value)) return 'nan'
  if (!Number.isFinite(value)) return value < 0 ? '-inf' : 'inf'
  const size = Math.abs(value)
  if (size >= 1e16 || (size !== 0 && size < 1e-4)) return value.toExponential().replace(/e([+-])(\d)$/, 'e$10$2')
  return Number.isInteger(value) ? `${Object.is(value, -0) ? '-0' : value}.0` : String(value)
}

const escapes: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** A string in the format of `repr`: in single quotes, unless it has single and no double ones. */
function quoted(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'"
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what repr escapes
  const escaped = text.replace(/[\\\u0000-\u001f\u007f-\u00a0\u00ad]/g, (letter) => {
    return escapes[letter] ?? `\\x${letter.charCodeAt(0).toString(16).padStart(2, '0')}`
  })
  return `${quote}${quote === "'" ? escaped.replaceAll("'", "\\'") : escaped}${quote}`
}

/** A nested value, as `repr` writes it. */
function inner(value: TemplateValue): string {
  if (value.type === 'StringValue') return quoted(String(value.value))
  return value.type === 'UndefinedValue' ? 'Undefined' : pythonText(value)
}

/** A value as Python writes it: `True`, `None`, `1.0`, `[1, 'a']`; empty for an undefined value. */
export function pythonText(given: TemplateValue): string {
  const { type, value } = given
  if (type === 'UndefinedValue') return ''
  if (type === 'NullValue') return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (type === 'FloatValue') return floatText(Number(value))
  if (Array.isArray(value)) {
    const items = value.map(inner)
    if (type !== 'TupleValue') return `[${items.join(', ')}]`
    return items.length === 1 ? `(${items[0]},)` : `(${items.join(', ')})`
  }
  if (value instanceof Map && type === 'ObjectValue')
    return `{${[...value].map(([key, item]) => `${typeof key === 'string' ? quoted(key) : String(key)}: ${inner(item)}`).join(', ')}}`
  return given.toString()
}
