/** What loading refuses, and how it says so. */
import { type ErrorCode, usageError } from '../../errors.js'
import type { AnyTensor } from './call_types.js'
import { DeviceTensor } from './device_tensor.js'
import type { ModelSource } from './source.js'
import { checkTensor, typeName } from './tensor.js'

type Given = Readonly<Record<string, unknown>>

/** An error of loading: `load.<what>`. */
export const refuse = (source: ModelSource, what: string, message: string, hint?: string) => {
  const code: ErrorCode = `load.${what}`
  return usageError(code, `${source.name}: ${message}`, hint === undefined ? {} : { hint })
}

/** An option that is a record; none where it is left out. */
export function recordOf(source: ModelSource, option: string, given: unknown): Given {
  if (given === undefined) return {}
  if (typeof given === 'object' && given !== null && !Array.isArray(given)) return given as Given
  throw refuse(source, option, `the option ${option} is { name: value }, got ${typeName(given)}`)
}

export const anyTensor = (source: ModelSource, name: string, given: unknown): AnyTensor =>
  given instanceof DeviceTensor ? given : checkTensor(`${source.name}: ${name}`, 'load', given)
