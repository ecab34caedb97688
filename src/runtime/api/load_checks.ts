/** Checks and errors of loading. */
import { type ErrorCode, usageError, type WhatOf } from '../../errors.js'
import type { AnyTensor } from './call_types.js'
import { DeviceTensor } from './device_tensor.js'
import { checkGiven } from './given.js'
import { typeName } from './tensor.js'

/** Name of the loaded declaration. */
type Loaded = { readonly name: string }
type Given = Readonly<Record<string, unknown>>

/** Creates an error of loading: `load.<what>`. */
export const refuse = (loaded: Loaded, what: WhatOf<'load'>, message: string, hint?: string) => {
  const code: ErrorCode = `load.${what}`
  return usageError(code, `${loaded.name}: ${message}`, hint === undefined ? {} : { hint })
}

/** Checks that an option is a record; an omitted option is an empty one. */
export function recordOf(loaded: Loaded, option: WhatOf<'load'>, given: unknown): Given {
  if (given === undefined) return {}
  if (typeof given === 'object' && given !== null && !Array.isArray(given)) return given as Given
  throw refuse(loaded, option, `expected { name: value } as the option ${option}, got ${typeName(given)}`)
}

export const anyTensor = (loaded: Loaded, name: string, given: unknown): AnyTensor =>
  given instanceof DeviceTensor ? given : checkGiven(`${loaded.name}: ${name}`, 'load', given)
