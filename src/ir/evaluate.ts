/**
 * An interpreter of the whole IR in double precision. It is obvious rather than fast: the body run by Node must equal it exactly,
 * which is how the front end is checked, and later passes are checked against it in turn. Tensors are logical, so
 * layouts play no part, and of storage types only what stores to 8-bit integers do (src/ir/store.ts).
 */
import type { Run } from './constructs/construct.js'
import { constructOf } from './constructs/index.js'
import type { DType } from './dtype.js'
import { type Env, elements, evaluateExpr, type HostTensor, known, type Numbers, position } from './evaluate_expr.js'
import type { Kernel, TensorParam } from './kernel.js'
import { storedNumber } from './store.js'

export { type Env, emptyEnv, evaluateExpr, type HostTensor, position } from './evaluate_expr.js'

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
