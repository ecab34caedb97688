/**
 * Matching of a graph's dimensions and type parameters to those of a program that applies it. A dimension that is a whole axis of an input
 * has the extent of the given value there; one that is a factor of an axis follows from the others; one that no input determines becomes
 * the program's dimension of the same name. The result is then checked against every axis.
 */
import { inTurn, usageError } from '../../errors.js'
import type { Graph, GraphValue } from '../../ir/graph.js'
import { type DTypeRef, printType } from '../../ir/kernel.js'
import {
  divideInto,
  type Extent,
  multiplyExtents,
  parseExtent,
  printShape,
  quotientOf,
  type Shape,
  sumExtents,
  termsOf,
} from '../../ir/shape.js'

/** A graph's dimensions and type parameters, in terms of the program's. */
export interface Matched {
  readonly dims: Readonly<Record<string, Extent>>
  readonly types: Readonly<Record<string, DTypeRef>>
}

/** A value given to a graph, with its name. */
export interface Given extends GraphValue {
  readonly name: string
}

/**
 * @param where the application, for messages
 * @param dims extents that the author states
 * @throws usage `program.shape`, `program.dtype`, `program.layout` naming value and input, for all that do not fit
 */
export function matchGraph(
  where: string,
  graph: Graph,
  given: Readonly<Record<string, Given>>,
  dims: Readonly<Record<string, string>> = {},
): Matched {
  const pairs = Object.entries(graph.inputs).flatMap(([input, id]) => {
    const [wanted, value] = [graph.values[id], given[input]]
    return wanted === undefined || value === undefined ? [] : [{ input, wanted, value }]
  })
  const ofOtherRank = pairs.filter(({ wanted, value }) => wanted.shape.length !== value.shape.length)
  const known = new Map<string, Extent>(Object.entries(dims).map(([dim, extent]) => [dim, parseExtent(extent)]))
  const axes = pairs.flatMap(({ wanted, value }) => wanted.shape.map((extent, i) => ({ extent, is: value.shape[i] ?? extent })))
  for (let before = -1; before < known.size; ) {
    before = known.size
    for (const { extent, is } of axes) solve(extent, is, known)
  }
  const all = graph.values.flatMap(({ shape }) => shape.flatMap((extent) => extent.dims))
  for (const dim of all) if (!known.has(dim)) known.set(dim, { factor: 1, dims: [dim] })
  const found = Object.fromEntries(known)
  const types: Record<string, DTypeRef> = {}
  inTurn(
    pairs.flatMap((pair) => {
      const { input, wanted, value } = pair
      // If an input has another rank, the dimensions that it determines are unknown.
      const shape = ofOtherRank.length > 0 ? wanted.shape : wanted.shape.map((extent) => substitute(extent, found))
      const isOther = ofOtherRank.length > 0 ? ofOtherRank.includes(pair) : printShape(shape) !== printShape(value.shape)
      return [
        () => {
          if (isOther) throw differs(where, input, { ...wanted, shape }, value)
        },
        () => {
          if (wanted.layout === value.layout) return
          throw usageError(
            'program.layout',
            `${where}: input ${input} is in layout ${wanted.layout}, ${value.name} is in layout ${value.layout}`,
          )
        },
        () => bindType(where, pair, types),
      ]
    }),
  )
  return { dims: found, types }
}

/** A graph's extent, in terms of the program's dimensions. */
export const substitute = ({ factor, dims }: Extent, known: Readonly<Record<string, Extent>>): Extent => {
  const parts = dims.map((dim) => {
    const [terms, quotient] = [termsOf(dim), quotientOf(dim)]
    if (quotient !== undefined) return divideInto(substitute(quotient.of, known), substitute(quotient.by, known))
    return terms === undefined
      ? (known[dim] ?? { factor: 1, dims: [dim] })
      : sumExtents(terms.map((term) => substitute(term, known)))
  })
  return multiplyExtents([{ factor, dims: [] }, ...parts])
}

export const substituteShape = (shape: Shape, known: Readonly<Record<string, Extent>>): Shape =>
  shape.map((extent) => substitute(extent, known))

/** A graph's storage type, in terms of the program's. */
export const substituteType = (dtype: DTypeRef, types: Readonly<Record<string, DTypeRef>>): DTypeRef =>
  typeof dtype === 'string' ? dtype : (types[dtype.param] ?? dtype)

/** Solves an extent for its only unknown dimension, if the quotient is an extent. */
function solve({ factor, dims }: Extent, is: Extent, known: Map<string, Extent>): void {
  const unknown = dims.filter((dim) => !known.has(dim))
  const [only] = unknown
  if (only === undefined || unknown.length > 1) return
  const rest = substitute({ factor, dims: dims.filter((dim) => dim !== only) }, Object.fromEntries(known))
  const left = [...is.dims]
  for (const dim of rest.dims) {
    const at = left.indexOf(dim)
    if (at < 0) return
    left.splice(at, 1)
  }
  if (is.factor % rest.factor === 0) known.set(only, { factor: is.factor / rest.factor, dims: left })
}

/** Binds a type parameter, or checks a storage type against its known one. */
function bindType(
  where: string,
  { input, wanted, value }: { readonly input: string; readonly wanted: GraphValue; readonly value: Given },
  types: Record<string, DTypeRef>,
): void {
  const expected = substituteType(wanted.dtype, types)
  if (typeof wanted.dtype !== 'string' && types[wanted.dtype.param] === undefined) types[wanted.dtype.param] = value.dtype
  else if (JSON.stringify(expected) !== JSON.stringify(value.dtype)) {
    throw usageError(
      'program.dtype',
      `${where}: input ${input} is ${printType(expected)}, ${value.name} is ${printType(value.dtype)}`,
    )
  }
}

function differs(where: string, input: string, wanted: GraphValue, value: Given): Error {
  const message = `${where}: input ${input} is "${printShape(wanted.shape)}", ${value.name} is "${printShape(value.shape)}"`
  return usageError('program.shape', message, {
    hint: 'pass another value, use p.view() to give it another shape, or state the dimensions of the graph: { dims: { ... } }',
  })
}
