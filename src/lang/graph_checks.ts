/** Checks of a graph's declaration: parts, dimensions and names. graph.ts calls them before and after the build function runs. */
import { usageError } from '../errors.js'
import { inherited, isInherited } from '../ir/get_own.js'
import type { GraphValue } from '../ir/graph.js'
import { told } from './arguments.js'

/** Checks types at run time, for authors in untyped JavaScript. @throws usage `graph.config` for the first part that is not an object */
export function expectRecords(name: string, parts: Readonly<Record<string, unknown>>): void {
  const absent = Object.entries(parts).find(([, part]) => typeof part !== 'object' || part === null)
  if (absent !== undefined) throw noPart(name, absent[0], `add it, possibly as an empty object: ${absent[0]}: {}`)
}

export const noPart = (name: string, part: string, hint: string) =>
  usageError('graph.config', `graph ${name} has no ${part}`, { hint })

/** @throws usage `graph.dims`, `graph.typical` for an unknown dimension, and for an invalid extent */
export function checkDims(
  name: string,
  values: readonly GraphValue[],
  declared: readonly string[] = [],
  typical: Readonly<Record<string, number>> = {},
): void {
  const dims = new Set(values.flatMap(({ shape }) => shape.flatMap((extent) => extent.dims)))
  const hint = `dimensions are ${[...dims].join(', ')}`
  const unknown = declared.find((dim) => !dims.has(dim))
  if (unknown !== undefined) {
    const about = { path: ['dims', unknown] }
    throw usageError('graph.dims', `${name}: no value has the dimension ${unknown}`, { hint, about })
  }
  for (const [dim, extent] of Object.entries(typical)) {
    if (dims.has(dim) && Number.isInteger(extent) && extent > 0) continue
    const what = dims.has(dim) ? `expected a positive integer for ${dim}, got ${told(extent)}` : `it has no dimension ${dim}`
    throw usageError('graph.typical', `${name}: ${what}`, { hint, about: { path: ['typical', dim] } })
  }
}

/** Refuses names that every JavaScript object inherits. */
export function checkNames(graphName: string, names: readonly string[]): void {
  const found = names.find(isInherited)
  if (found === undefined) return
  throw usageError('graph.name', `${graphName}: "${found}" is not a name: ${inherited.reason}`, {
    hint: inherited.hint,
    about: { path: [found] },
  })
}
