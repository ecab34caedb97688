/**
 * Kernel names as a reader knows them, from the mangled symbols that ptxas reports: the part of the Itanium C++ ABI that kernel
 * names use, so that a build report does not depend on which demanglers a machine has.
 */

interface Cursor {
  readonly text: string
  at: number
}

const builtins: Readonly<Record<string, string>> = {
  b: 'bool',
  i: 'int',
  j: 'unsigned',
  l: 'long',
  m: 'unsigned long',
  f: 'float',
  d: 'double',
}

function match(cursor: Cursor, pattern: RegExp): string | undefined {
  const found = pattern.exec(cursor.text.slice(cursor.at))?.[0]
  if (found !== undefined) cursor.at += found.length
  return found
}

/** `4name`, with template arguments when there are any. */
function component(cursor: Cursor): string | undefined {
  const length = match(cursor, /^\d+/)
  if (length === undefined) return undefined
  const end = cursor.at + Number(length)
  const name = cursor.text.slice(cursor.at, end)
  cursor.at = end
  if (match(cursor, /^I/) === undefined) return name
  const args: string[] = []
  while (match(cursor, /^E/) === undefined) {
    const arg = argument(cursor)
    if (arg === undefined) return name
    args.push(arg)
  }
  return `${name}<${args.join(', ')}>`
}

/** `N6heddle4TeamE`: the last component, which is the name without its namespaces. */
function nested(cursor: Cursor): string | undefined {
  let last: string | undefined
  while (match(cursor, /^E/) === undefined) {
    const next = component(cursor)
    if (next === undefined) return last
    last = next
  }
  return last
}

function argument(cursor: Cursor): string | undefined {
  if (match(cursor, /^N/) !== undefined) return nested(cursor)
  const literal = match(cursor, /^L[a-z]n?\d+E/)
  if (literal !== undefined) return literal.slice(2, -1).replace('n', '-')
  const builtin = match(cursor, /^[bijlmfd]/)
  return builtin === undefined ? component(cursor) : builtins[builtin]
}

/** `_ZN6heddle4keptIN6heddle4WarpILi4EEELi1EEEvPf` is `kept<Warp<4>, 1>`. What is not a mangled name is itself. */
export function readableName(symbol: string): string {
  const cursor: Cursor = { text: symbol, at: 0 }
  if (match(cursor, /^_Z/) === undefined) return symbol
  const name = match(cursor, /^N/) === undefined ? component(cursor) : nested(cursor)
  return name ?? symbol
}
