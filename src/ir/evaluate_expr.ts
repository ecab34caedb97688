/**
 * Evaluation of expressions in double precision. Each expression is compiled to a closure once, since an evaluation visits it for every
 * element of a tensor: names, the operation and the number of arguments are looked up once.
 */
import { findingError } from '../errors.js'
import type { Value } from './constructs/construct.js'
import type { Expr, ExprOf } from './expr.js'
import { intrinsic } from './intrinsics.js'
import { operands } from './map_operands.js'
import { monoid } from './monoids.js'

/** A tensor on the host: logical elements in row-major order, regardless of the layout on a device. */
export interface HostTensor {
  readonly data: ArrayLike<number>
  readonly shape: readonly number[]
}

export type Numbers = Readonly<Record<string, number>>

/** Values of names during an evaluation. */
export interface Env {
  readonly dims: Numbers
  readonly attrs: Numbers
  /** Indices and locals; rewritten in place as loops run. */
  readonly values: Map<string, Value>
  readonly rows: Map<string, readonly Value[]>
  readonly tensors: Readonly<Record<string, HostTensor>>
  /** True in kernels whose axes are merged (src/schedule/normalise/merge_axes.ts). */
  readonly isMerged?: boolean
}

export const emptyEnv = (dims: Numbers): Env => ({ dims, attrs: {}, values: new Map(), rows: new Map(), tensors: {} })

export function known<T>(value: T | undefined, what: string, name: string): T {
  if (value === undefined) throw new Error(`internal: evaluate: ${what} ${name} has no value`)
  return value
}

/**
 * Row-major position of logical indices.
 * @throws finding `evaluate.bounds` naming tensor, indices and shape when one is outside.
 */
export function position(name: string, indices: readonly number[], shape: readonly number[]): number {
  let at = 0
  for (let axis = 0; axis < shape.length; axis++) {
    const extent = shape[axis] ?? 0
    const index = indices[axis] ?? Number.NaN
    if (!(index >= 0 && index < extent && Number.isInteger(index))) {
      throw outside(name, indices, shape)
    }
    at = at * extent + index
  }
  return at
}

const outside = (name: string, indices: readonly number[], shape: readonly number[]): Error =>
  findingError('evaluate.bounds', `${name}[${indices.join(', ')}] is outside its shape (${shape.join(', ')})`)

/**
 * The same in a kernel with merged axes: an index after the end of its axis goes on in the axis before.
 * @throws finding `evaluate.bounds` if the position is outside of the tensor
 */
export function mergedPosition(name: string, indices: readonly number[], shape: readonly number[]): number {
  const at = shape.reduce((all, extent, axis) => all * extent + (indices[axis] ?? Number.NaN), 0)
  const elements = shape.reduce((all, extent) => all * extent, 1)
  if (at >= 0 && at < elements && Number.isInteger(at)) return at
  throw outside(name, indices, shape)
}

type Evaluated = (env: Env) => Value

/** Compiled closures of expressions. */
const made = new WeakMap<Expr, Evaluated>()

/** Value of an expression. Branches not taken are not evaluated. */
export const evaluateExpr = (expr: Expr, env: Env): Value => functionOf(expr)(env)

function functionOf(expr: Expr): Evaluated {
  const before = made.get(expr)
  if (before !== undefined) return before
  const evaluated = make(expr)
  made.set(expr, evaluated)
  return evaluated
}

function make(expr: Expr): Evaluated {
  switch (expr.kind) {
    case 'const': {
      const { value } = expr
      return () => value
    }
    case 'dim': {
      const { name } = expr
      return ({ dims }) => known(dims[name], 'dimension', name)
    }
    case 'attr': {
      const { name } = expr
      return ({ attrs }) => known(attrs[name], 'attribute', name)
    }
    case 'index':
    case 'local': {
      const { kind, name } = expr
      return ({ values }) => known(values.get(name), kind, name)
    }
    case 'element': {
      const { row: name } = expr
      const index = functionOf(expr.index)
      return (env) => {
        const row = known(env.rows.get(name), 'row', name)
        const at = Number(index(env))
        if (!(at >= 0 && at < row.length && Number.isInteger(at))) position(name, [at], [row.length])
        return row[at] ?? Number.NaN
      }
    }
    case 'load':
      return loaded(expr)
    case 'call':
      return called(expr)
    case 'fold':
      return folded(expr)
  }
}

function loaded({ tensor: name, indices }: ExprOf<'load'>): Evaluated {
  const positions = indices.map(functionOf)
  return (env) => {
    const { data, shape } = known(env.tensors[name], 'tensor', name)
    let at = 0
    for (let axis = 0; axis < shape.length; axis++) {
      const index = Number(positions[axis]?.(env))
      const extent = shape[axis] ?? 0
      if (!(index >= 0 && index < extent && Number.isInteger(index))) {
        const given = positions.map((each) => Number(each(env)))
        return env.isMerged === true ? (data[mergedPosition(name, given, shape)] ?? Number.NaN) : position(name, given, shape)
      }
      at = at * extent + index
    }
    return data[at] ?? Number.NaN
  }
}

function called({ fn, args }: ExprOf<'call'>): Evaluated {
  const given = args.map(functionOf)
  const [a, b, c] = given
  if (a && b && (fn === 'and' || fn === 'or')) {
    const goesOn = fn === 'and'
    return (env) => {
      const left = a(env)
      return left === goesOn ? b(env) : left
    }
  }
  if (a && b && c && fn === 'select') return (env) => (a(env) ? b(env) : c(env))
  const { evaluate } = intrinsic(fn)
  if (a && !b) return (env) => evaluate(a(env))
  if (a && b && !c) return (env) => evaluate(a(env), b(env))
  return (env) => evaluate(...given.map((arg) => arg(env)))
}

/**
 * A fold inside an element depends on few names (the mean of a row on none of its elements), so its last value is cached with the values
 * of these names.
 */
function folded(expr: ExprOf<'fold'>): Evaluated {
  const { index, value, length, monoid: name } = expr
  const count = functionOf(length)
  const element = functionOf(value)
  const { evaluate } = monoid(name)
  const names = namesRead(expr)
  const cache = new WeakMap<Env, { readonly given: readonly (Value | undefined)[]; readonly value: Value }>()
  return (env) => {
    const before = cache.get(env)
    if (before !== undefined && names?.every((each, i) => env.values.get(each) === before.given[i])) return before.value
    const given = names?.map((each) => env.values.get(each))
    const found = evaluate(Number(count(env)), (at) => {
      env.values.set(index, at)
      return Number(element(env))
    })
    if (given !== undefined) cache.set(env, { given, value: found })
    return found
  }
}

/** Free indices and locals of a fold; undefined if it reads rows, which change under the same names. */
function namesRead(fold: ExprOf<'fold'>): readonly string[] | undefined {
  const names = new Set<string>()
  const bound = new Set<string>()
  const seen = new Set<Expr>([fold])
  for (const node of seen) {
    if (node.kind === 'element') return undefined
    if (node.kind === 'index' || node.kind === 'local') names.add(node.name)
    if (node.kind === 'fold') bound.add(node.index)
    for (const operand of operands(node)) seen.add(operand)
  }
  return [...names].filter((name) => !bound.has(name))
}
