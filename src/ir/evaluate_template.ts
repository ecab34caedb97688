/** What a template kernel computes, by its definition and in double precision: the reference its main loops are held against. */
import { type Env, emptyEnv, evaluateExpr, type HostTensor, position } from './evaluate.js'
import { evaluateMatmul } from './evaluate_product.js'
import type { Expr } from './expr.js'
import type { AttentionKernel, DecodeAttentionKernel, RowAccess, TemplateKernel } from './template.js'

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
      return evaluateAttention(kernel, inputs, dims, attrs)
    case 'decode attention':
      return evaluateDecodeAttention(kernel, inputs, dims, attrs)
  }
}

const extentOf = (dims: Numbers, name: string): number => dims[name] ?? 0

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
    const [keys, queries, owned] = [number(kernel.range.upper), number(kernel.queryCount), number(kernel.ownedCount)]
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
  return weighted(
    kernel.score,
    row(kernel.query),
    env,
    Array.from({ length: keys }, (_, j) => j),
    {
      key: () => row(kernel.key),
      value: () => row(kernel.value),
    },
  )
}

/** Rows of the place `j` that `env` stands at. */
interface Place {
  readonly key: () => readonly number[]
  readonly value: () => readonly number[]
}

/** Values of places, weighted by the softmax of their scores with a query. */
function weighted(score: Expr, query: readonly number[], env: Env, places: readonly number[], at: Place): number[] {
  const scores = places.map((j) => {
    env.values.set('j', j)
    const raw = at.key().reduce((sum, value, d) => sum + value * (query[d] ?? 0), 0)
    env.values.set('raw', raw)
    return Number(evaluateExpr(score, env))
  })
  const top = Math.max(...scores)
  const weights = scores.map((each) => Math.exp(each - top))
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  const result = query.map(() => 0)
  for (const [n, weight] of weights.entries()) {
    env.values.set('j', places[n] ?? 0)
    for (const [d, value] of at.value().entries()) result[d] = (result[d] ?? 0) + (weight / total) * value
  }
  return result
}

function evaluateDecodeAttention(
  kernel: DecodeAttentionKernel,
  inputs: Tensors,
  dims: Numbers,
  attrs: Numbers,
): Record<string, HostTensor> {
  const env: Env = { ...emptyEnv(dims), attrs, tensors: inputs }
  const number = (expr: Expr): number => Number(evaluateExpr(expr, env))
  const set = (name: string, value: number): void => void env.values.set(name, value)
  const outputs = Object.fromEntries(
    kernel.tensors.flatMap((tensor): [string, { data: Float64Array; shape: number[] }][] => {
      if (tensor.access !== 'out') return []
      const shape = tensor.dims.map((dim) => extentOf(dims, dim))
      const data = new Float64Array(shape.reduce((size, extent) => size * extent, 1)).fill(Number.NaN)
      const before = tensor.updates === undefined ? undefined : inputs[tensor.updates]
      if (before !== undefined) data.set(before.data)
      return [[tensor.name, { data, shape }]]
    }),
  )
  const store = ({ tensor, indices }: RowAccess, values: readonly number[]): void => {
    const { data, shape } = outputs[tensor] ?? { data: new Float64Array(), shape: [] }
    data.set(values, position(tensor, indices.map(number), shape))
  }
  const headDim = number(kernel.headDim)
  const elements = (expr: Expr): number[] =>
    Array.from({ length: headDim }, (_, c) => {
      set('c', c)
      return number(expr)
    })
  const row = ({ tensor, indices }: RowAccess): number[] => {
    const { data, shape } = inputs[tensor] ?? { data: [], shape: [] }
    const first = position(tensor, indices.map(number), shape)
    return Array.from({ length: headDim }, (_, d) => data[first + d] ?? Number.NaN)
  }
  const { fresh } = kernel
  const places = number(kernel.places)
  const [batch, heads, queries] = [kernel.batch, kernel.heads, kernel.queries].map(number)
  for (let b = 0; b < (batch ?? 0); b++) {
    set('b', b)
    const attended = Array.from({ length: Math.min(number(kernel.range.upper), places) }, (_, j) => j)
    const freshAt = fresh === undefined ? -1 : number(fresh.place)
    // A fresh row is that of its owner; the others of a place are in memory.
    const from = (access: RowAccess, computed: Expr | undefined) => (): number[] => {
      set('owner', number(kernel.owner))
      if (computed === undefined || env.values.get('j') !== freshAt) return row(access)
      set('b', Number(env.values.get('owner')))
      const values = elements(computed)
      set('b', b)
      return values
    }
    for (let h = 0; h < (heads ?? 0); h++) {
      set('h', h)
      if (fresh !== undefined && freshAt >= 0 && freshAt < places) {
        set('j', freshAt)
        store(fresh.keyCache, elements(fresh.key))
        store(fresh.valueCache, elements(fresh.value))
      }
      for (let i = 0; i < (queries ?? 0); i++) {
        set('i', i)
        const at = { key: from(kernel.key, fresh?.key), value: from(kernel.value, fresh?.value) }
        const results = weighted(kernel.score, elements(kernel.query), env, attended, at)
        const stored = results.map((result) => {
          set('result', result)
          return number(kernel.stored)
        })
        store(kernel.out, stored)
      }
    }
  }
  return outputs
}
