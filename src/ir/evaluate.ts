/**
 * Reference evaluator of a whole kernel in double precision. The body run by Node must equal it exactly, which checks the front end;
 * later passes are checked against it in turn. Statements are interpreted, and the expressions they read run as JavaScript. Tensors are
 * logical, so layouts play no part, and storage types only as src/ir/store.ts says.
 */

import type { Run } from './constructs/construct.js'
import type { DType } from './dtype.js'
import { type HostTensor, known, type Numbers, position } from './evaluate_expr.js'
import { pointRuns } from './evaluate_shared.js'
import type { Precision } from './javascript.js'
import type { Kernel, TensorParam } from './kernel.js'
import { countOf } from './row_axis.js'
import { runnable } from './runnable.js'
import { isWiderThanRead, loadedNumber, storedNumber } from './store.js'

export { type Env, emptyEnv, evaluateExpr, type HostTensor, position } from './evaluate_expr.js'

type Outputs = Readonly<
  Record<string, { readonly data: Float64Array; readonly shape: readonly number[]; readonly dtype: DType | undefined }>
>

/** A tensor as input of a body: elements outside int32 are clamped to its range. */
export const asRead = (dtype: DType | undefined, tensor: HostTensor): HostTensor =>
  isWiderThanRead(dtype) ? { ...tensor, data: Float64Array.from(tensor.data, (value) => loadedNumber(dtype, value)) } : tensor

/** Inputs of a kernel, converted for its body. */
const inputsAsRead = (kernel: Kernel, tensors: Readonly<Record<string, HostTensor>>): Record<string, HostTensor> => ({
  ...tensors,
  ...Object.fromEntries(
    kernel.tensors.flatMap(({ name, access, dtype }) => {
      const given = tensors[name]
      return access === 'in' && typeof dtype === 'string' && given !== undefined ? [[name, asRead(dtype, given)] as const] : []
    }),
  ),
})

/** Stores of statements, into `outputs`. */
const writesTo = (outputs: Outputs): Pick<Run, 'write' | 'writeRow'> => ({
  write: (tensor, indices, value) => {
    const { data, shape, dtype } = known(outputs[tensor], 'output', tensor)
    data[position(tensor, indices, shape)] = storedNumber(dtype, Number(value))
  },
  writeRow: (tensor, rows, length, element, holds) => {
    const { data, shape, dtype } = known(outputs[tensor], 'output', tensor)
    const end = Math.min(length, shape.at(-1) ?? 0)
    let first: number | undefined
    for (let at = 0; at < length; at++) {
      if (holds?.(at) === false) continue
      first = first === undefined || at >= end ? position(tensor, [...rows, at], shape) - at : first
      data[first + at] = storedNumber(dtype, Number(element(at)))
    }
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
 * Runs a kernel on the host. Every dimension must have a value; attributes default to the kernel's defaults. Elements that no
 * statement stores stay NaN, or keep their value in the tensor that the output updates. In single precision sums are still of doubles.
 * @param stray for strayed precision: returns the float32 that a result becomes
 * @throws finding `evaluate.bounds` when an access leaves its tensor.
 */
export function evaluateKernel(
  kernel: Kernel,
  tensors: Readonly<Record<string, HostTensor>>,
  dims: Numbers,
  attrs: Numbers = {},
  precision: Precision = 'double',
  stray?: (value: number) => number,
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
  const { reads, setValue } = runnable(
    kernel,
    precision,
  )({ tensors: inputsAsRead(kernel, tensors), dims, attrs: { ...defaults, ...attrs }, stray })
  const run: Run = { ...reads, ...writesTo(outputs) }
  const extents = kernel.rows.map((row) => countOf(row, (dim) => known(dims[dim], 'dimension', dim)))
  const statements = pointRuns(kernel, extents)
  const setRows = kernel.rows.map((row) => setValue(row.index))
  forEachPoint(extents, (point) => {
    setRows.forEach((set, axis) => {
      set(point[axis] ?? 0)
    })
    for (const evaluate of statements) evaluate(run, point)
  })
  return Object.fromEntries(Object.entries(outputs).map(([name, { data, shape }]) => [name, { data, shape }]))
}
