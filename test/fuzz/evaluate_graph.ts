/**
 * The float64 reference of a described graph. One plan stores values that another keeps in registers: every value includes its value before and
 * after a rounding to its storage type. Independent of src.
 */
import { roundingShare, slack, tiny, unit } from './bounds.js'
import type { DType } from './describe.js'
import { type Held, runOp } from './evaluate.js'
import { byRows, calibrated, channels } from './evaluate_int8.js'
import { extentOf, type GraphDesc, type NodeDesc, type StoredDesc } from './graph_describe.js'
import { extremes, stored } from './storage.js'
import { isExact, isNaNVal, isUnknown, unknown, type Val } from './value.js'

type Sizes = Readonly<Record<string, number>>

/** Relative error of one rounding. */
const roundings: Readonly<Partial<Record<DType, number>>> = { f16: 2 ** -11, bf16: 2 ** -8 }

/** A value with its range after one rounding to storage, or none. */
function handedOn(dtype: DType, value: Val): Val {
  if (isNaNVal(value) || isUnknown(value) || (isExact(value) && !Number.isFinite(value.v))) return value
  if (dtype === 'i8' || dtype === 'i32')
    return { v: stored(dtype, value.v), lo: stored(dtype, value.lo), hi: stored(dtype, value.hi) }
  const share = roundings[dtype]
  if (share === undefined || (isExact(value) && stored(dtype, value.v) === value.v)) return value
  const [, , least = 0] = extremes(dtype)
  const wide = (x: number): number => roundingShare * share * Math.abs(x) + least
  const [lo, hi] = [value.lo - wide(value.lo), value.hi + wide(value.hi)]
  const [most = 0] = extremes(dtype)
  return Math.max(Math.abs(lo), Math.abs(hi)) > most && Math.abs(value.v) < 1e29 ? unknown(value.v) : { v: value.v, lo, hi }
}

/** Axes of both factors and of the result, by letters. */
function axesOf(subscripts: string): readonly [a: string[], b: string[], out: string[]] {
  const [factors = '', out = ''] = subscripts.split(' -> ')
  const [a = '', b = ''] = factors.split(', ')
  return [a.split(' '), b.split(' '), out.split(' ')]
}

/** A matmul by its subscripts: sums of products in any order, each with the error bounds of its terms. */
export function matmul(subscripts: string, a: Held, b: Held, dtype: DType): Held {
  const [axesA, axesB, axesOut] = axesOf(subscripts)
  const sizes: Record<string, number> = {}
  for (const [axes, { shape }] of [
    [axesA, a],
    [axesB, b],
  ] as const)
    for (const [i, axis] of axes.entries()) sizes[axis] = shape[i] ?? 0
  const depth = axesA.filter((axis) => !axesOut.includes(axis))
  const strides = (axes: readonly string[]): Record<string, number> => {
    const found: Record<string, number> = {}
    let stride = 1
    for (const axis of axes.toReversed()) {
      found[axis] = stride
      stride *= sizes[axis] ?? 1
    }
    return found
  }
  const [inA, inB] = [strides(axesA), strides(axesB)]
  const places = (axes: readonly string[], of: Readonly<Record<string, number>>): number[] =>
    axes.reduce<number[]>(
      (list, axis) => list.flatMap((base) => Array.from({ length: sizes[axis] ?? 0 }, (_, i) => base + i * (of[axis] ?? 0))),
      [0],
    )
  const [rowsA, rowsB] = [places(axesOut, inA), places(axesOut, inB)]
  const [termsA, termsB] = [places(depth, inA), places(depth, inB)]
  const isFloat = a.dtype !== 'i8' || b.dtype !== 'i8'
  const [left, right] = [split(a.values), split(b.values)]
  const values = rowsA.map((row, i): Val => dot(left, right, row, rowsB[i] ?? 0, termsA, termsB, isFloat))
  return { dtype, shape: axesOut.map((axis) => sizes[axis] ?? 0), values }
}

/** Middles and radii of intervals. */
const split = (values: readonly Val[]) => ({
  v: Float64Array.from(values, ({ v }) => v),
  r: Float64Array.from(values, ({ v, lo, hi }) => Math.max(hi - v, v - lo)),
})
type Split = ReturnType<typeof split>

function dot(
  a: Split,
  b: Split,
  rowA: number,
  rowB: number,
  termsA: readonly number[],
  termsB: readonly number[],
  isFloat: boolean,
): Val {
  let [v, size, radius] = [0, 0, 0]
  for (let i = 0; i < termsA.length; i++) {
    const [at, to] = [rowA + (termsA[i] ?? 0), rowB + (termsB[i] ?? 0)]
    const [x, y, rx, ry] = [a.v[at] ?? 0, b.v[to] ?? 0, a.r[at] ?? 0, b.r[to] ?? 0]
    v += x * y
    size += Math.abs(x * y)
    radius += Math.abs(x) * ry + rx * Math.abs(y) + rx * ry
  }
  if (!Number.isFinite(radius) || !Number.isFinite(size)) return unknown(v)
  const error = radius + (isFloat ? slack * unit * (termsA.length + 2) * (size + radius) + tiny : 0)
  return { v, lo: v - error, hi: v + error }
}

/** Storage of a plan's values, with their given largest magnitudes. */
export interface StoredBy extends StoredDesc {
  readonly scales: Readonly<Record<string, number>>
}

/** Every value of a graph, including inputs and weights. @param by types in which a plan stores some of them, int8 included */
export function runGraph(
  graph: GraphDesc,
  given: ReadonlyMap<string, Held>,
  sizes: Sizes,
  by?: StoredBy,
): ReadonlyMap<string, Held> {
  const values = new Map(given)
  const at = (name: string): Held => {
    const found = values.get(name)
    if (found === undefined) throw new Error(`the graph has no ${name}`)
    return found
  }
  for (const node of graph.nodes) {
    const dtype = node.dtype === 'T' ? graph.main : node.dtype
    const made = runNode(node, node.kind === 'matmul' ? multiplied(graph, node, at, by) : at, sizes, dtype)
    const edge = by?.edges[node.name]
    values.set(node.name, {
      dtype,
      shape: node.dims.map((extent) => extentOf(extent, sizes)),
      values: made.values.map((value) => handedOn(dtype, edge === undefined ? value : handedOn(edge, value))),
    })
  }
  return values
}

/** The operands of a matmul, in quantised form if a plan stores them as int8 and each is a weight or stored so. */
function multiplied(
  graph: GraphDesc,
  node: NodeDesc & { readonly kind: 'matmul' },
  at: (name: string) => Held,
  by: StoredBy | undefined,
): (name: string) => Held {
  if (by === undefined) return at
  const source = (name: string): string => {
    const found = graph.nodes.find((each) => each.name === name)
    return found?.kind === 'view' && !isNamed(name) ? source(found.input) : name
  }
  const isNamed = (name: string): boolean => by.values.includes(name) || by.dynamic.includes(name)
  const isWeight = (name: string): boolean => graph.given.some((each) => each.isWeight && each.name === name)
  const operands = [node.a, node.b]
  const isInteger = operands.every((name) => isWeight(name) || isNamed(source(name))) && !operands.every(isWeight)
  if (!isInteger && !by.weightOnly.includes(node.name)) return at
  return (name) => {
    const held = at(name)
    if (isWeight(name)) return channels(held)
    const from = source(name)
    if (!isInteger) return held
    const own = by.dynamic.includes(from) ? byRows(at(from)) : calibrated(at(from), by.scales[from] ?? 1)
    return { ...held, values: own.values }
  }
}

function runNode(node: NodeDesc, at: (name: string) => Held, sizes: Sizes, dtype: DType): Held {
  switch (node.kind) {
    case 'view':
      return at(node.input)
    case 'matmul':
      return matmul(node.subscripts, at(node.a), at(node.b), dtype)
    case 'op': {
      const tensors = new Map(Object.entries(node.inputs).map(([param, value]) => [param, at(value)] as const))
      // An op may reduce an axis that its output does not have.
      const given = node.op.inputs.flatMap(({ name, dims }) =>
        dims.map((dim, axis) => [dim, tensors.get(name)?.shape[axis] ?? 0] as const),
      )
      const made = node.dims.map((extent, axis) => [`d${axis}`, extentOf(extent, sizes)] as const)
      const dims = Object.fromEntries([...given, ...made])
      const y = runOp(node.op, tensors, dims).get('y')
      if (y === undefined) throw new Error(`${node.op.name} has no y`)
      return y
    }
  }
}
