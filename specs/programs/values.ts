/** Values of a step by name. The values passed between steps depend on how tokens are chosen. */
import type { ProgramResult, ProgramTensor } from 'heddle'

export type Values = Readonly<Record<string, ProgramTensor>>

/** The value with a name. @throws if a step has none, which is a mistake in its program */
export const at = (values: Values, name: string): ProgramResult => {
  const found = values[name]
  if (found === undefined) throw new Error(`a step has no value ${name}`)
  return { value: found.value }
}

/** The values with some names. */
export const pick = <const N extends string>(values: Values, names: readonly N[]): { readonly [K in N]: ProgramResult } =>
  Object.fromEntries(names.map((name) => [name, at(values, name)])) as { readonly [K in N]: ProgramResult }
