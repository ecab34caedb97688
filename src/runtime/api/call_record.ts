/** Options of a call that are records. */
import { usageError } from '../../errors.js'
import type { AnyOp } from './call_types.js'
import { typeName } from './tensor.js'

/** Returns a record of options without undefined values. @throws usage `call.dims`, `call.attrs`, `call.dtype` */
export function checkRecord(
  op: AnyOp,
  option: 'dims' | 'attrs' | 'dtype',
  given: unknown,
  form = '{ name: value }',
): Record<string, number> {
  if (given === undefined) return {}
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw usageError(`call.${option}`, `${op.name}: expected ${form} as the option ${option}, got ${typeName(given)}`)
  }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
}
