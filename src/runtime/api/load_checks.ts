/** What loading refuses, and how it says so. */
import { type ErrorCode, usageError, type WhatOf } from '../../errors.js'
import type { AnyTensor } from './call_types.js'
import { DeviceTensor } from './device_tensor.js'
import { checkGiven } from './given.js'
import { typeName } from './tensor.js'

/** What is loaded, by the name its author gave it. */
type Loaded = { readonly name: string }
type Given = Readonly<Record<string, unknown>>

/** An error of loading: `load.<what>`. */
export const refuse = (loaded: Loaded, what: WhatOf<'load'>, message: string, hint?: string) => {
  const code: ErrorCode = `load.${what}`
  return usageError(code, `${loaded.name}: ${message}`, hint === undefined ? {} : { hint })
}

/** An option that is a record; none where it is left out. */
export function recordOf(loaded: Loaded, option: WhatOf<'load'>, given: unknown): Given {
  if (given === undefined) return {}
  if (typeof given === 'object' && given !== null && !Array.isArray(given)) return given as Given
  throw refuse(loaded, option, `the option ${option} is { name: value }, got ${typeName(given)}`)
}

export const anyTensor = (loaded: Loaded, name: string, given: unknown): AnyTensor =>
  given instanceof DeviceTensor ? given : checkGiven(`${loaded.name}: ${name}`, 'load', given)
