/** What a template kernel computes, by its definition and in double precision: the reference its main loops are held against. */
import { type Env, emptyEnv, evaluateExpr, evaluateKernel, forEachPoint, type HostTensor, position } from './evaluate.js'
import type { AttentionKernel, MatmulKernel, RowAccess, TemplateKernel } from './template.js'

type Numbers = Readonly<Record<string, number>>
type Tensors = Readonly<Record<string, HostTensor>>

/** Outputs by name. Elements no row of the kernel writes are NaN. */
export const evaluateTemplate = (
  kernel: TemplateKernel,
  inputs: Tensors,
  dims: Numbers,
  attrs: Numbers,
): Record<string, HostTensor> =>
  kernel.kind === 'matmul' ? evaluateMatmul(kernel, inputs, dims, attrs) : evaluateAttention(kernel, inputs, dims, attrs)

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

function evaluateAttention(kernel: AttentionKernel, inputs: Tensors, dims: Numbers, attrs: Numbers): Record<string, HostTensor> {
  const env: Env = { ...emptyEnv(dims), attrs, tensors: inputs }
  const number = (expr: Parameters<typeof evaluateExpr>[0]): number => Number(evaluateExpr(expr, env))
  const param = kernel.tensors.find(({ name }) => name === kernel.out.tensor)
  const shape = (param?.dims ?? []).map((dim) => extentOf(dims, dim))
  const out = new Float64Array(shape.reduce((size, extent) => size * extent, 1)).fill(Number.NaN)
  const headDim = number(kernel.headDim)
  const row = ({ tensor, indices }: RowAccess): number[] => {
    const { data, shape: of } = inputs[tensor] ?? { data: [], shape: [] }
    const first = position(tensor, indices.map(number), of)
    return Array.from({ length: headDim }, (_, d) => data[first + d] ?? Number.NaN)
  }
  const set = (name: string, value: number): void => void env.values.set(name, value)
  for (let b = 0; b < number(kernel.batch); b++) {
    set('b', b)
    const [keys, queries, owned] = [number(kernel.keyCount), number(kernel.queryCount), number(kernel.ownedCount)]
    for (let h = 0; h < number(kernel.heads); h++) {
      set('h', h)
      for (let i = 0; i < owned; i++) {
        set('i', i)
        const results = i < queries ? attend(kernel, keys, row, env) : new Array<number>(headDim).fill(0)
        const stored = results.map((result) => {
          set('result', result)
          return number(kernel.stored)
        })
        out.set(stored, position(kernel.out.tensor, kernel.out.indices.map(number), shape))
      }
    }
  }
  return { [kernel.out.tensor]: { data: out, shape } }
}

/** The result of the query that `env` stands at. */
function attend(kernel: AttentionKernel, keys: number, row: (access: RowAccess) => number[], env: Env): number[] {
  const query = row(kernel.query)
  const scores = Array.from({ length: keys }, (_, j) => {
    env.values.set('j', j)
    const raw = row(kernel.key).reduce((sum, value, d) => sum + value * (query[d] ?? 0), 0)
    env.values.set('raw', raw)
    return Number(evaluateExpr(kernel.score, env))
  })
  const top = Math.max(...scores)
  const weights = scores.map((score) => Math.exp(score - top))
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  const result = query.map(() => 0)
  for (const [j, weight] of weights.entries()) {
    env.values.set('j', j)
    for (const [d, value] of row(kernel.value).entries()) result[d] = (result[d] ?? 0) + (weight / total) * value
  }
  return result
}
