/** What a template kernel computes, by its definition and in double precision: the reference its main loops are held against. */
import { type Env, emptyEnv, evaluateExpr, evaluateKernel, forEachPoint, type HostTensor, position } from './evaluate.js'
import type { Expr } from './expr.js'
import { meaningDims, meaningOf, ownedOf } from './meaning.js'
import type { AttentionKernel, DecodeAttentionKernel, MatmulKernel, TemplateKernel } from './template.js'

type Numbers = Readonly<Record<string, number>>
type Tensors = Readonly<Record<string, HostTensor>>

/** Outputs by name. Elements no row of the kernel writes are NaN, or what they are in the tensor that the output updates. */
export function evaluateTemplate(
  kernel: TemplateKernel,
  inputs: Tensors,
  dims: Numbers,
  attrs: Numbers,
): Record<string, HostTensor> {
  switch (kernel.kind) {
    case 'matmul':
      return evaluateMatmul(kernel, inputs, dims, attrs)
    case 'attention':
    case 'decode attention':
      return evaluateAttention(kernel, inputs, dims, attrs)
  }
}

const extentOf = (dims: Numbers, name: string): number => dims[name] ?? 0

function evaluateMatmul(kernel: MatmulKernel, inputs: Tensors, dims: Numbers, attrs: Numbers): Record<string, HostTensor> {
  const outer = [...kernel.batch, kernel.m, kernel.n]
  const extents = outer.map((name) => extentOf(dims, name))
  const k = extentOf(dims, kernel.k)
  /** An operand's data, and the distance of neighbours along each outer axis and along k. */
  const operand = (name: string) => {
    const axes = kernel.tensors.find((tensor) => tensor.name === name)?.dims ?? []
    const { data, shape } = inputs[name] ?? { data: [], shape: [] }
    // Where the last element lies inside, every other does.
    if (k > 0 && !extents.includes(0)) {
      position(
        name,
        axes.map((axis) => extentOf(dims, axis) - 1),
        shape,
      )
    }
    const strideOf = (axis: string): number => {
      const place = axes.indexOf(axis)
      return place < 0 ? 0 : shape.slice(place + 1).reduce((size, extent) => size * extent, 1)
    }
    return { data, strides: outer.map(strideOf), step: strideOf(kernel.k) }
  }
  const [a, b] = [operand(kernel.a), operand(kernel.b)]
  const along = (at: readonly number[], strides: readonly number[]): number =>
    at.reduce((offset, index, axis) => offset + index * (strides[axis] ?? 0), 0)
  const data = new Float64Array(extents.reduce((size, extent) => size * extent, 1))
  let element = 0
  forEachPoint(extents, (at) => {
    const [fromA, fromB] = [along(at, a.strides), along(at, b.strides)]
    let sum = 0
    for (let i = 0; i < k; i++) sum += (a.data[fromA + i * a.step] ?? Number.NaN) * (b.data[fromB + i * b.step] ?? Number.NaN)
    data[element++] = sum
  })
  return evaluateKernel(kernel.epilogue, { ...inputs, [kernel.accumulator]: { data, shape: extents } }, dims, attrs)
}

/** Runs the program that the template's slots make up, over as many rows as the sequence that owns most of them has. */
function evaluateAttention(
  kernel: AttentionKernel | DecodeAttentionKernel,
  inputs: Tensors,
  dims: Numbers,
  attrs: Numbers,
): Record<string, HostTensor> {
  const env: Env = { ...emptyEnv(dims), attrs, tensors: inputs }
  const number = (expr: Expr): number => Number(evaluateExpr(expr, env))
  const [batch, heads] = [number(kernel.batch), number(kernel.heads)]
  const owned = Array.from({ length: batch }, (_, b) => {
    env.values.set('b', b)
    return number(ownedOf(kernel))
  })
  const sizes = { [meaningDims.batch]: batch, [meaningDims.heads]: heads, [meaningDims.rows]: Math.max(0, ...owned) }
  return evaluateKernel(meaningOf(kernel), inputs, { ...dims, ...sizes }, attrs)
}
