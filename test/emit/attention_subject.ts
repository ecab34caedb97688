/** Attention kernels assembled by hand from plain row tensors: subjects of the tests of emitted attention. */

import { call, constant, dim, f32, i32, index, local, toFloat } from '../../src/ir/build.js'
import type { DType } from '../../src/ir/dtype.js'
import type { Expr } from '../../src/ir/expr.js'
import type { TensorParam } from '../../src/ir/kernel.js'
import { rowMajor } from '../../src/ir/layout.js'
import type { AttentionKernel } from '../../src/ir/template.js'

export const [b, h, i, j, c] = ['b', 'h', 'i', 'j', 'c'].map(index) as [Expr, Expr, Expr, Expr, Expr]
export const raw = local('raw')
export const result = local('result')

export const add = (x: Expr, y: Expr): Expr => call('add', x, y)
export const sub = (x: Expr, y: Expr): Expr => call('sub', x, y)
export const mul = (x: Expr, y: Expr): Expr => call('mul', x, y)
export const load = (tensor: string, ...indices: Expr[]): Expr => ({ kind: 'load', type: 'f32', tensor, indices })
export const loadInt = (tensor: string, ...indices: Expr[]): Expr => ({ kind: 'load', type: 'i32', tensor, indices })
export const select = (test: Expr, yes: Expr, no: Expr): Expr => call('select', test, yes, no)
export const number = (value: number): Expr => constant('f32', value)
export const scaled = (by: number): Expr => mul(raw, f32(by))
export const distance = toFloat(sub(j, i))

export const input = (name: string, dims: string, dtype: TensorParam['dtype'] = { param: 'T' }): TensorParam => ({
  name,
  access: 'in',
  dtype,
  dims: dims.split(' '),
  layout: rowMajor(dims.split(' ')),
})

const out = (dtype: TensorParam['dtype']): TensorParam => ({ ...input('y', 'b s h e', dtype), access: 'out' })

/** Fields of a kernel beyond plain attention of every query to every key. */
export type Variant = Partial<Omit<AttentionKernel, 'kind' | 'tensors' | 'out'>> & {
  readonly extra?: readonly TensorParam[]
  readonly stores?: TensorParam['dtype']
  /** Query heads for each head of keys and values. */
  readonly group?: number
}

/** Attention of q[b, s, h, d] to k[b, t, g, d] and v[b, t, g, e]. */
export function attentionKernel(
  name: string,
  { extra = [], stores = { param: 'T' }, group = 1, ...given }: Variant = {},
): AttentionKernel {
  const shared = group === 1 ? h : call('idiv', h, i32(group))
  const types: Readonly<Record<string, readonly DType[]>> = { T: ['f16', 'f32'] }
  return {
    kind: 'attention',
    name,
    source: { file: 'test.ts', line: 1, column: 1 },
    dims: ['b', 's', 't', 'h', 'g', 'd', 'e'],
    types,
    attrs: [],
    tensors: [input('q', 'b s h d'), input('k', 'b t g d'), input('v', 'b t g e'), ...extra, out(stores)],
    batch: dim('b'),
    heads: dim('h'),
    queries: dim('s'),
    keys: dim('t'),
    headDim: dim('d'),
    valueDim: dim('e'),
    query: { tensor: 'q', indices: [b, i, h, i32(0)] },
    key: { tensor: 'k', indices: [b, j, shared, i32(0)] },
    value: { tensor: 'v', indices: [b, j, shared, i32(0)] },
    out: { tensor: 'y', indices: [b, i, h, i32(0)] },
    queryCount: dim('s'),
    ownedCount: dim('s'),
    score: scaled(0.25),
    range: { lower: i32(0), upper: dim('t') },
    denominator: local('total'),
    stored: result,
    ...given,
  }
}
