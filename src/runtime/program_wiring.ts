/**
 * Converts a compiled program to the runtime's form: graphs wired by the names of values, scales filled in, sizes completed. Cheap: nothing
 * is compiled, and no name is parsed.
 */
import { usageError } from '../errors.js'
import type { DType } from '../ir/dtype.js'
import { getOwn } from '../ir/get_own.js'
import { isQuantised } from '../ir/graph.js'
import { resolveDType } from '../ir/instance.js'
import { stepOf, stepsPerUnit } from '../ir/int8_scale.js'
import { evaluateExtent, multiplyExtents, printExtent } from '../ir/shape.js'
import type { CompiledProgram, CompiledValue, ScaleAttr } from '../program/compiled.js'
import type { GraphApplication } from './application.js'
import type { StateDecl } from './states.js'

/** Magnitude that quantises to 127, by the application and the site that calibration recorded; undefined if unknown. */
export type AmaxLookup = (at: string, site: string) => number | undefined

/** Input of `buildProgram`, without sizes and types. */
export interface WiredProgram {
  readonly applications: readonly GraphApplication[]
  readonly inputs: readonly string[]
  /** Names of the values that are returned. */
  readonly outputs: readonly string[]
}

export interface WiringOptions {
  readonly amax?: AmaxLookup | undefined
  /** Names of the session's tensors, by the program's names of weights; the same names where undefined. */
  readonly tensors?: Readonly<Record<string, string>>
}

/** @throws usage `run.scales` if a quantised plan lacks the scale of a value */
export function wireProgram(
  compiled: CompiledProgram,
  { amax = () => undefined, tensors = {} }: WiringOptions = {},
): WiredProgram {
  const { graphs, steps, inputs, outputs, plan } = compiled
  const applications = steps.map(({ graph: key, attrs, weights, ...step }): GraphApplication => {
    const graph = graphs[key]
    if (graph === undefined) throw new Error(`internal: there is no graph ${key}`)
    const numbers = Object.entries(attrs).map(([name, attr]): [string, number] => [
      name,
      typeof attr === 'number' ? attr : scaleOf(plan, attr, amax),
    ])
    const named = Object.entries(weights).map(([name, weight]): [string, string] => [name, getOwn(tensors, weight) ?? weight])
    return { ...step, graph, weights: Object.fromEntries(named), attrs: Object.fromEntries(numbers) }
  })
  return { applications, inputs, outputs: Object.values(outputs) }
}

/** 127 / amax or amax / 127 in float32, both 0 for an amax of 0. */
function scaleOf(plan: string, { at, site, as }: ScaleAttr, amax: AmaxLookup): number {
  const value = amax(at, site)
  if (value !== undefined && Number.isFinite(value) && value >= 0) return as === 'step' ? stepOf(value) : stepsPerUnit(value)
  const found = value === undefined ? 'got none' : `got ${value}`
  throw usageError('run.scales', `plan ${plan} needs a scale for ${site} of ${at}, ${found}`, {
    hint: 'make scales with `heddle calibrate`, and name the file with --scales',
  })
}

/**
 * Sizes of every dimension. The number of packed rows may be omitted: the default holds full sequences.
 * @throws usage `program.dims` for a dimension without a size, for an invalid size and for an unknown dimension
 */
export function programSizes(
  { name, dims, ragged }: CompiledProgram,
  given: Readonly<Record<string, number>>,
): Readonly<Record<string, number>> {
  const sizes: Record<string, number> = {}
  for (const dim of Object.keys(dims)) {
    const size = given[dim]
    if (size === undefined || !Number.isInteger(size) || size < 1) {
      throw usageError('program.dims', `${name}: dimension ${dim} ${size === undefined ? 'has no size' : `cannot be ${size}`}`, {
        hint: `dimensions are ${Object.keys(dims).join(', ')}`,
      })
    }
    sizes[dim] = size
  }
  for (const { tokens, batch, seq } of ragged) {
    const most = evaluateExtent(multiplyExtents([batch, seq]), sizes)
    const rows = given[tokens] ?? most
    if (!Number.isInteger(rows) || rows < 1 || rows > most)
      throw usageError('program.dims', `${name}: ${tokens} cannot be ${rows}`, {
        hint: `from 1 to ${printExtent(batch)}*${printExtent(seq)}, ${most}`,
      })
    sizes[tokens] = rows
  }
  const other = Object.keys(given).find((dim) => !Object.hasOwn(sizes, dim))
  if (other !== undefined)
    throw usageError('program.dims', `${name} has no dimension ${other}`, {
      hint: `dimensions are ${Object.keys(sizes).join(', ')}`,
    })
  return sizes
}

/** True if weights are int8 under the plan. */
export const hasInt8Weights = ({ applications }: Pick<WiredProgram, 'applications'>): boolean =>
  applications.some(({ graph }) => isQuantised(graph))

/** True if a value is packed, without padding: its caller supplies or receives the token rows concatenated. */
export const isPacked = ({ values }: CompiledProgram, name: string): boolean => values[name]?.rows === 'packed'

/** Declarations for `openStates`, for the states of one or more programs that share them. */
export function stateDecls(
  { states, values }: CompiledProgram,
  sizes: Readonly<Record<string, number>>,
  types: Readonly<Record<string, DType>>,
): Record<string, StateDecl> {
  return Object.fromEntries(
    Object.entries(states).map(([name, { cleared }]) => [name, { ...tensorOf(values[name], name, sizes, types), cleared }]),
  )
}

/** Storage type, shape and layout of a value at the given sizes. */
export function tensorOf(
  value: CompiledValue | CompiledProgram['weights'][string] | undefined,
  name: string,
  sizes: Readonly<Record<string, number>>,
  types: Readonly<Record<string, DType>>,
) {
  if (value === undefined) throw new Error(`internal: there is no value ${name}`)
  const { dtype, shape, layout } = value
  return { dtype: resolveDType(dtype, types), shape: shape.map((extent) => evaluateExtent(extent, sizes)), layout }
}
