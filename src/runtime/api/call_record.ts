/** Options of a call that are records. */
import { usageError } from '../../errors.js'
import type { AnyOp } from './call_types.js'
import { typeName } from './tensor.js'

/** A record of options without those that are undefined. */
export function checkRecord(
  op: AnyOp,
  option: 'dims' | 'attrs' | 'dtype',
  given: unknown,
  form = '{ name: value }',
): Record<string, number> {
  if (given === undefined) return {}
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw usageError(`call.${option}`, `${op.name}: the option ${option} is ${form}, got ${typeName(given)}`)
  }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
}
