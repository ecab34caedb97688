/**
 * Roundings of computed rows of attention. Main loops take a computed query, key or value in storage precision, which a reference in double
 * precision does not have. How far a rounding moves a result depends on the case: two keys of nearly equal scores share a query's weights, and
 * large terms of a score cancel. Each computed element is multiplied here by a factor near 1, read from an additional input.
 */
import { call, index } from '../ir/build.js'
import type { Env, HostTensor } from '../ir/evaluate.js'
import { emptyEnv, evaluateExpr } from '../ir/evaluate.js'
import type { Expr } from '../ir/expr.js'
import type { AttentionKernel, DecodeAttentionKernel, RowOperand } from '../ir/template.js'

type Attention = AttentionKernel | DecodeAttentionKernel
type Numbers = Readonly<Record<string, number>>

/** A kernel whose computed rows are multiplied by factors, and the shapes of these factors by input. */
export interface RoundedRows {
  readonly kernel: Attention
  readonly shapes: Readonly<Record<string, readonly number[]>>
}

/** Names of the factors, which no tensor of a body has. */
const [ofQuery, ofKey, ofValue] = ['(query rounding)', '(key rounding)', '(value rounding)']

/** Multiplies computed rows by factors; undefined if every row is read as it is stored. */
export function roundedRows(kernel: Attention, dims: Numbers, attrs: Numbers): RoundedRows | undefined {
  const extents = extentsOf(kernel, { ...emptyEnv(dims), attrs })
  const made = kernel.kind === 'attention' ? ofSequences(kernel, extents) : ofStep(kernel, extents)
  return Object.keys(made.shapes).length === 0 ? undefined : made
}

interface Extents {
  readonly batch: number
  readonly heads: number
  readonly queries: number
  readonly headDim: number
  readonly valueDim: number
  readonly keys: number
}

function extentsOf(kernel: Attention, env: Env): Extents {
  const number = (expr: Expr): number => Number(evaluateExpr(expr, env))
  const { batch, heads, queries, headDim, valueDim } = kernel
  const keys = kernel.kind === 'attention' ? kernel.keys : kernel.places
  return {
    batch: number(batch),
    heads: number(heads),
    queries: number(queries),
    headDim: number(headDim),
    valueDim: number(valueDim),
    keys: number(keys),
  }
}

const times = (element: Expr, factors: string, ...at: readonly string[]): Expr =>
  call('mul', element, { kind: 'load', type: 'f32', tensor: factors, indices: at.map(index) })

function ofSequences(kernel: AttentionKernel, { batch, heads, queries, headDim, valueDim, keys }: Extents): RoundedRows {
  const shapes: Record<string, readonly number[]> = {}
  const rounded = (operand: RowOperand, factors: string, row: string, shape: readonly number[]): RowOperand => {
    if (operand.element === undefined) return operand
    shapes[factors] = shape
    return { ...operand, element: times(operand.element, factors, 'b', 'h', row, 'c') }
  }
  return {
    kernel: {
      ...kernel,
      query: rounded(kernel.query, ofQuery, 'i', [batch, heads, queries, headDim]),
      key: rounded(kernel.key, ofKey, 'j', [batch, heads, keys, headDim]),
      value: rounded(kernel.value, ofValue, 'j', [batch, heads, keys, valueDim]),
    },
    shapes,
  }
}

function ofStep(kernel: DecodeAttentionKernel, { batch, heads, queries, headDim, valueDim }: Extents): RoundedRows {
  const shapes: Record<string, readonly number[]> = {}
  const rounded = (element: Expr, factors: string, at: readonly string[], shape: readonly number[]): Expr => {
    if (element.kind === 'load') return element
    shapes[factors] = shape
    return times(element, factors, ...at)
  }
  const { query, fresh } = kernel
  return {
    kernel: {
      ...kernel,
      query: rounded(query, ofQuery, ['b', 'h', 'i', 'c'], [batch, heads, queries, headDim]),
      fresh: fresh && {
        ...fresh,
        key: rounded(fresh.key, ofKey, ['b', 'h', 'c'], [batch, heads, headDim]),
        value: rounded(fresh.value, ofValue, ['b', 'h', 'c'], [batch, heads, valueDim]),
      },
    },
    shapes,
  }
}

/** The factors of one run: each is `1 + reach * stray()`. */
export const factorsOf = ({ shapes }: RoundedRows, reach: number, stray: () => number): Readonly<Record<string, HostTensor>> =>
  Object.fromEntries(
    Object.entries(shapes).map(([name, shape]) => {
      const length = shape.reduce((product, extent) => product * extent, 1)
      return [name, { data: Float64Array.from({ length }, () => 1 + reach * stray()), shape }]
    }),
  )
