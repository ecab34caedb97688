/**
 * Checks of options from untyped code: an unknown name is refused with the closest known one, and so is a value of the wrong type.
 */
import { usageError } from '../../errors.js'
import { nameHint } from './names.js'
import { typeName } from './tensor.js'

/** Expected types of options that are used unchecked elsewhere. Others are checked where they are read. */
const kinds: Readonly<Record<string, { readonly expected: string; readonly takes: (value: unknown) => boolean }>> = {
  signal: { expected: 'an AbortSignal', takes: (value) => value instanceof AbortSignal },
  keep: { expected: 'true or false', takes: (value) => typeof value === 'boolean' },
  packed: { expected: 'true or false', takes: (value) => typeof value === 'boolean' },
  root: { expected: 'the path of a folder', takes: (value) => typeof value === 'string' },
  onProgress: { expected: 'a function', takes: (value) => typeof value === 'function' },
  onNotice: { expected: 'a function', takes: (value) => typeof value === 'function' },
}

/**
 * Refuses options that are not an object, unknown names, and values of the wrong type.
 * @param who function that takes them, for messages: `openDevice`
 * @throws usage `<area>.option`
 */
export function checkOptions(
  area: 'call' | 'device' | 'tensor' | 'load' | 'run',
  who: string,
  names: readonly string[],
  options: unknown,
): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw usageError(`${area}.option`, `${who}: expected options { name: value }, got ${typeName(options)}`, {
      hint: `options are ${names.join(', ')}`,
    })
  }
  for (const [name, value] of Object.entries(options)) {
    if (!names.includes(name)) {
      throw usageError(`${area}.option`, `${who} has no option ${name}`, { hint: nameHint('options', names, name) })
    }
    const kind = value === undefined ? undefined : kinds[name]
    if (kind !== undefined && !kind.takes(value)) {
      throw usageError(`${area}.option`, `${who}: expected ${kind.expected} as the option ${name}, got ${typeName(value)}`)
    }
  }
}
