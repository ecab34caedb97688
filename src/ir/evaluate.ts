/**
 * An interpreter of the whole IR in double precision. It is slow and obvious: the body run by Node must equal it exactly,
 * which is how the front end is checked, and later passes are checked against it in turn. Tensors are logical, so
 * layouts play no part, and of storage types only what stores to 8-bit integers do (src/ir/store.ts).
 */
import { findingError } from '../errors.js'
import type { DType } from './dtype.js'
import type { Expr } from './expr.js'
import { intrinsic } from './intrinsics.js'
import type { Kernel, Stmt, TensorParam } from './kernel.js'
import { countValues, monoid } from './monoids.js'
import { storedNumber } from './store.js'
import { thresholdOf } from './threshold.js'
import { rankValues } from './top_k.js'

/** A tensor on the host: logical elements in row-major order, whatever the layout on a device. */
export interface HostTensor {
  readonly data: ArrayLike<number>
  readonly shape: readonly number[]
}

type Value = number | boolean
type Numbers = Readonly<Record<string, number>>

/** What names mean while an expression is evaluated. */
export interface Env {
  readonly dims: Numbers
  readonly attrs: Numbers
  /** Indices and locals; rewritten in place as loops run. */
  readonly values: Map<string, Value>
  readonly rows: Map<string, readonly Value[]>
  readonly tensors: Readonly<Record<string, HostTensor>>
}

export const emptyEnv = (dims: Numbers): Env => ({ dims, attrs: {}, values: new Map(), rows: new Map(), tensors: {} })

function known<T>(value: T | undefined, what: string, name: string): T {
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
      throw findingError('evaluate.bounds', `${name}[${indices.join(', ')}] is outside its shape (${shape.join(', ')})`)
    }
    at = at * extent + index
  }
  return at
}

/** Evaluates with `name` bound to 0, 1, ... as a monoid or row asks for elements. */
function elements(index: string, value: Expr, env: Env): (at: number) => Value {
  return (at) => {
    env.values.set(index, at)
    return evaluateExpr(value, env)
  }
}

/** Where a load reads: `position` without a list of indices, which most of the time of an evaluation would go into. */
function positionOf(load: Extract<Expr, { kind: 'load' }>, shape: readonly number[], env: Env): number {
  let at = 0
  for (let axis = 0; axis < shape.length; axis++) {
    const expr = load.indices[axis]
    const index = expr === undefined ? Number.NaN : Number(evaluateExpr(expr, env))
    const extent = shape[axis] ?? 0
    if (!(index >= 0 && index < extent && Number.isInteger(index))) {
      const indices = load.indices.map((each) => Number(evaluateExpr(each, env)))
      return position(load.tensor, indices, shape)
    }
    at = at * extent + index
  }
  return at
}

/** The value of an expression. Branches not taken are not evaluated. */
export function evaluateExpr(expr: Expr, env: Env): Value {
  switch (expr.kind) {
    case 'const':
      return expr.value
    case 'dim':
      return known(env.dims[expr.name], 'dimension', expr.name)
    case 'attr':
      return known(env.attrs[expr.name], 'attribute', expr.name)
    case 'index':
    case 'local':
      return known(env.values.get(expr.name), expr.kind, expr.name)
    case 'element': {
      const row = known(env.rows.get(expr.row), 'row', expr.row)
      return row[position(expr.row, [Number(evaluateExpr(expr.index, env))], [row.length])] ?? Number.NaN
    }
    case 'load': {
      const tensor = known(env.tensors[expr.tensor], 'tensor', expr.tensor)
      return tensor.data[positionOf(expr, tensor.shape, env)] ?? Number.NaN
    }
    case 'call': {
      const [a, b, c] = expr.args
      if (a && b && (expr.fn === 'and' || expr.fn === 'or')) {
        const left = evaluateExpr(a, env)
        return left === (expr.fn === 'and') ? evaluateExpr(b, env) : left
      }
      if (a && b && c && expr.fn === 'select') return evaluateExpr(evaluateExpr(a, env) ? b : c, env)
      const evaluate = intrinsic(expr.fn).evaluate as (...args: Value[]) => Value
      // Nearly all take one or two, and need no list of arguments.
      if (a && !b) return evaluate(evaluateExpr(a, env))
      if (a && b && !c) return evaluate(evaluateExpr(a, env), evaluateExpr(b, env))
      return evaluate(...expr.args.map((arg) => evaluateExpr(arg, env)))
    }
    case 'fold':
      return reduce(expr, env)
  }
}

type Reduction = Extract<Expr, { kind: 'fold' }> | Extract<Stmt, { kind: 'reduce' }>

const reduce = (node: Reduction, env: Env): number => {
  const element = elements(node.index, node.value, env)
  return monoid(node.monoid).evaluate(Number(evaluateExpr(node.length, env)), (at) => Number(element(at)))
}

type Outputs = Readonly<
  Record<string, { readonly data: Float64Array; readonly shape: readonly number[]; readonly dtype: DType | undefined }>
>

function run(stmt: Stmt, env: Env, outputs: Outputs): void {
  const write = (tensor: string, indices: readonly number[], value: Value): void => {
    const { data, shape, dtype } = known(outputs[tensor], 'output', tensor)
    data[position(tensor, indices, shape)] = storedNumber(dtype, Number(value))
  }
  const numbers = (exprs: readonly Expr[]): number[] => exprs.map((expr) => Number(evaluateExpr(expr, env)))
  switch (stmt.kind) {
    case 'let':
      env.values.set(stmt.name, evaluateExpr(stmt.value, env))
      return
    case 'reduce':
      env.values.set(stmt.name, reduce(stmt, env))
      return
    case 'row': {
      const element = elements(stmt.index, stmt.value, env)
      env.rows.set(
        stmt.name,
        Array.from({ length: Number(evaluateExpr(stmt.length, env)) }, (_, at) => element(at)),
      )
      return
    }
    case 'scan': {
      const element = elements(stmt.index, stmt.value, env)
      const length = Number(evaluateExpr(stmt.length, env))
      env.rows.set(
        stmt.name,
        monoid(stmt.monoid).scan(length, (at) => Number(element(at))),
      )
      return
    }
    case 'threshold': {
      const key = elements(stmt.index, stmt.key, env)
      const weight = elements(stmt.index, stmt.value, env)
      const [length = 0, target = 0] = numbers([stmt.length, stmt.target])
      env.values.set(
        stmt.name,
        thresholdOf(
          length,
          target,
          (at) => Number(key(at)),
          (at) => Number(weight(at)),
        ),
      )
      return
    }
    case 'storeRow': {
      const rows = numbers(stmt.rows)
      const length = Number(evaluateExpr(stmt.length, env))
      const element = elements(stmt.index, stmt.value, env)
      const holds = stmt.when === undefined ? () => true : elements(stmt.index, stmt.when, env)
      for (let at = 0; at < length; at++) if (holds(at)) write(stmt.tensor, [...rows, at], element(at))
      return
    }
    case 'histogram': {
      const rows = numbers(stmt.rows)
      const element = elements(stmt.index, stmt.value, env)
      const counts = countValues(Number(evaluateExpr(stmt.bins, env)), Number(evaluateExpr(stmt.length, env)), (at) =>
        Number(element(at)),
      )
      for (const [bin, count] of counts.entries()) write(stmt.tensor, [...rows, bin], count)
      return
    }
    case 'topK': {
      const element = elements(stmt.index, stmt.value, env)
      const [count, length] = [stmt.count, stmt.length].map((expr) => Number(evaluateExpr(expr, env)))
      const { values, indices } = rankValues(count ?? 0, length ?? 0, (at) => Number(element(at)))
      env.rows.set(stmt.name, values)
      env.rows.set(stmt.indices, indices)
      return
    }
    case 'store':
      if (stmt.when === undefined || evaluateExpr(stmt.when, env))
        write(stmt.tensor, numbers(stmt.indices), evaluateExpr(stmt.value, env))
  }
}

/** Calls `visit` for every point of an index space, last axis fastest. */
export function forEachPoint(extents: readonly number[], visit: (point: readonly number[]) => void): void {
  const point = extents.map(() => 0)
  const total = extents.reduce((product, extent) => product * extent, 1)
  for (let count = 0; count < total; count++) {
    visit(point)
    for (let axis = extents.length - 1; axis >= 0; axis--) {
      const next = (point[axis] ?? 0) + 1
      point[axis] = next === extents[axis] ? 0 : next
      if (point[axis] !== 0) break
    }
  }
}

const shapeOf = (tensor: TensorParam, dims: Numbers): number[] => tensor.dims.map((name) => known(dims[name], 'dimension', name))

/**
 * Runs a kernel on the host. Every dimension must have a value; attributes default to the kernel's own. Elements no
 * statement stores stay NaN, or what they are in the tensor that the output updates.
 * @throws finding `evaluate.bounds` when an access leaves its tensor.
 */
export function evaluateKernel(
  kernel: Kernel,
  tensors: Readonly<Record<string, HostTensor>>,
  dims: Numbers,
  attrs: Numbers = {},
): Record<string, { data: Float64Array; shape: readonly number[] }> {
  const outputs = Object.fromEntries(
    kernel.tensors
      .filter((tensor) => tensor.access === 'out')
      .map((tensor) => {
        const shape = shapeOf(tensor, dims)
        const before = tensor.updates === undefined ? undefined : tensors[tensor.updates]
        const data = new Float64Array(shape.reduce((a, b) => a * b, 1)).fill(Number.NaN)
        if (before !== undefined) data.set(before.data)
        return [tensor.name, { data, shape, dtype: typeof tensor.dtype === 'string' ? tensor.dtype : undefined }]
      }),
  )
  const defaults = Object.fromEntries(kernel.attrs.map((attr) => [attr.name, attr.default]))
  const env: Env = { dims, attrs: { ...defaults, ...attrs }, values: new Map(), rows: new Map(), tensors }
  const extents = kernel.rows.map((row) => known(dims[row.dim], 'dimension', row.dim))
  forEachPoint(extents, (point) => {
    kernel.rows.forEach((row, axis) => {
      env.values.set(row.index, point[axis] ?? 0)
    })
    for (const stmt of kernel.body) run(stmt, env, outputs)
  })
  return Object.fromEntries(Object.entries(outputs).map(([name, { data, shape }]) => [name, { data, shape }]))
}
