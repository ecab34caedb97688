/**
 * An interpreter of the whole IR in double precision. It is slow and obvious: the body run by Node must equal it exactly,
 * which is how the front end is checked, and later passes are checked against it in turn. Tensors are logical, so
 * layouts play no part, and of storage types only what stores to 8-bit integers do (src/ir/store.ts).
 */
import { findingError } from '../errors.js'
import type { Run, Value } from './constructs/construct.js'
import { constructOf } from './constructs/index.js'
import type { DType } from './dtype.js'
import type { Expr, ExprOf } from './expr.js'
import { intrinsic } from './intrinsics.js'
import type { Kernel, TensorParam } from './kernel.js'
import { monoid } from './monoids.js'
import { storedNumber } from './store.js'

/** A tensor on the host: logical elements in row-major order, whatever the layout on a device. */
export interface HostTensor {
  readonly data: ArrayLike<number>
  readonly shape: readonly number[]
}

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
      const { evaluate } = intrinsic(expr.fn)
      // Nearly all take one or two, and need no list of arguments.
      if (a && !b) return evaluate(evaluateExpr(a, env))
      if (a && b && !c) return evaluate(evaluateExpr(a, env), evaluateExpr(b, env))
      return evaluate(...expr.args.map((arg) => evaluateExpr(arg, env)))
    }
    case 'fold':
      return reduce(expr, env)
  }
}

function reduce(node: ExprOf<'fold'>, env: Env): number {
  const element = elements(node.index, node.value, env)
  return monoid(node.monoid).evaluate(Number(evaluateExpr(node.length, env)), (at) => Number(element(at)))
}

type Outputs = Readonly<
  Record<string, { readonly data: Float64Array; readonly shape: readonly number[]; readonly dtype: DType | undefined }>
>

/** What statements do while names mean what `env` says. */
const runIn = (env: Env, outputs: Outputs): Run => ({
  value: (expr) => evaluateExpr(expr, env),
  number: (expr) => Number(evaluateExpr(expr, env)),
  element: (index, expr) => elements(index, expr, env),
  elementNumber: (index, expr) => {
    const element = elements(index, expr, env)
    return (at) => Number(element(at))
  },
  setLocal: (name, value) => {
    env.values.set(name, value)
  },
  setRow: (name, values) => {
    env.rows.set(name, values)
  },
  write: (tensor, indices, value) => {
    const { data, shape, dtype } = known(outputs[tensor], 'output', tensor)
    data[position(tensor, indices, shape)] = storedNumber(dtype, Number(value))
  },
})

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
  const run = runIn(env, outputs)
  const extents = kernel.rows.map((row) => known(dims[row.dim], 'dimension', row.dim))
  forEachPoint(extents, (point) => {
    kernel.rows.forEach((row, axis) => {
      env.values.set(row.index, point[axis] ?? 0)
    })
    for (const stmt of kernel.body) constructOf(stmt).evaluate(stmt, run)
  })
  return Object.fromEntries(Object.entries(outputs).map(([name, { data, shape }]) => [name, { data, shape }]))
}
