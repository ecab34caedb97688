/**
 * Reference semantics of an attention template, as a row program: its slots assembled with plain loops. A main loop accumulates the same
 * sums over tiles of keys. The template verifier checks this program like any other, and the evaluator runs it. The derivation of a
 * template compares it with the bodies that the template was derived from.
 */
import { call, constant, f32, i32, index } from './build.js'
import type { Expr } from './expr.js'
import type { Kernel, Stmt } from './kernel.js'
import { all, between, type Parts, select, softmaxBody } from './softmax_reference.js'
import type { AttentionKernel, CacheAccess, DecodeAttentionKernel, RowAccess } from './template.js'
import { substitute } from './walk.js'

export { hiddenBelow } from './softmax_reference.js'

/** Extents of the row program that follow from the template: sequences, heads, and the largest number of rows of any sequence. */
export const referenceDims = { batch: '(batch)', heads: '(heads)', rows: '(rows)' } as const

const h = index('h')
const i = index('i')

const load = ({ tensor, indices }: RowAccess, element: Expr): Expr => ({
  kind: 'load',
  type: 'f32',
  tensor,
  indices: [...indices.slice(0, -1), element],
})

/** The program of either form of attention. */
export const attentionReference = (kernel: AttentionKernel | DecodeAttentionKernel): Kernel =>
  kernel.kind === 'attention' ? program(kernel, sequenceParts(kernel), []) : decodeReference(kernel)

function program(kernel: AttentionKernel | DecodeAttentionKernel, parts: Parts, stores: readonly Stmt[]): Kernel {
  return {
    name: kernel.name,
    source: kernel.source,
    dims: [...kernel.dims, ...Object.values(referenceDims)],
    types: kernel.types,
    attrs: kernel.attrs,
    tensors: kernel.tensors,
    rows: [
      { index: 'b', dim: referenceDims.batch },
      { index: 'h', dim: referenceDims.heads },
      { index: 'i', dim: referenceDims.rows },
    ],
    body: [...softmaxBody(parts), ...stores],
  }
}

function sequenceParts(kernel: AttentionKernel): Parts {
  const isComputed = call('lt', i, kernel.queryCount)
  const operand =
    ({ element, ...access }: AttentionKernel['key']) =>
    (j: Expr, c: Expr): Expr =>
      placed(element === undefined ? load(access, index('c')) : element, j, c)
  const [key, value] = [operand(kernel.key), operand(kernel.value)]
  const query = operand(kernel.query)
  return {
    ...kernel,
    isComputed,
    query: (c) => query(index('j'), c),
    key,
    value,
    isOwned: call('lt', i, kernel.ownedCount),
  }
}

/** Substitutes `j` and `c` in an expression. */
const placed = (expr: Expr, j: Expr, c: Expr): Expr =>
  substitute(
    expr,
    new Map([
      ['j', j],
      ['c', c],
    ]),
  )

function decodeReference(kernel: DecodeAttentionKernel): Kernel {
  const { fresh, owner, shared, places } = kernel
  const head = shared.kind === 'const' && shared.value === 1 ? h : call('idiv', h, shared)
  /** Element `c` of the cache at position `j`, or the computed element if this call stores it there. */
  const past =
    ({ scale, ...access }: CacheAccess, computed: Expr | undefined) =>
    (j: Expr, c: Expr): Expr => {
      const whose = substitute(owner, new Map([['j', j]]))
      const stored = substitute(
        scale === undefined ? load(access, index('c')) : call('mul', load(access, index('c')), scale),
        new Map([
          ['owner', whose],
          ['h', head],
          ['j', j],
          ['c', c],
        ]),
      )
      if (fresh === undefined || computed === undefined) return stored
      const own = substitute(
        computed,
        new Map([
          ['b', whose],
          ['h', head],
          ['c', c],
        ]),
      )
      return select(call('eq', j, fresh.place), own, stored)
    }
  const parts: Parts = {
    ...kernel,
    isComputed: constant('bool', true),
    keys: places,
    query: (c) => substitute(kernel.query, new Map([['c', c]])),
    key: past(kernel.key, fresh?.key),
    value: past(kernel.value, fresh?.value),
    isOwned: constant('bool', true),
  }
  const isFirst = all(call('eq', i, i32(0)), call('eq', call('mod', h, shared), i32(0)))
  const stores = (fresh === undefined ? [] : [fresh.keyCache, fresh.valueCache]).map((cache, n): Stmt => {
    const inner = `(c of cache ${n})`
    const computed = n === 0 ? fresh?.key : fresh?.value
    const place = fresh?.place ?? i32(0)
    const here = new Map<string, Expr>([
      ['h', head],
      ['j', place],
      ['c', index(inner)],
    ])
    return {
      kind: 'storeRow',
      tensor: cache.tensor,
      rows: cache.indices.slice(0, -1).map((expr) => substitute(expr, here)),
      length: n === 0 ? kernel.headDim : kernel.valueDim,
      index: inner,
      value: substitute(computed ?? f32(0), here),
      when: all(isFirst, between(i32(0), place, places)),
    }
  })
  return program(kernel, parts, stores)
}

/** Number of rows of a sequence that are written, as an expression of `b`: the rows that the program runs over. */
export const ownedOf = (kernel: AttentionKernel | DecodeAttentionKernel): Expr =>
  kernel.kind === 'attention' ? kernel.ownedCount : kernel.queries
