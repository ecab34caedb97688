/**
 * Reference semantics of an attention template, as a row program: its slots assembled with plain loops. A main loop accumulates the same
 * sums over tiles of keys. The template verifier checks this program like any other, and the evaluator runs it. The derivation of a
 * template compares it with the bodies that the template was derived from.
 */
import { call, constant, f32, i32, index, local } from './build.js'
import type { Expr } from './expr.js'
import type { Kernel, Stmt } from './kernel.js'
import type { AttentionKernel, CacheAccess, DecodeAttentionKernel, RowAccess, SoftmaxSlots } from './template.js'
import { substitute } from './walk.js'

/** Extents of the row program that follow from the template: sequences, heads, and the largest number of rows of any sequence. */
export const referenceDims = { batch: '(batch)', heads: '(heads)', rows: '(rows)' } as const

/** Scores below this hide a key, as -Infinity does: masks of large negative numbers and of -Infinity mean the same. */
export const hiddenBelow = -1e29

const h = index('h')
const i = index('i')
const at = (row: string, place: Expr): Expr => ({ kind: 'element', type: 'f32', row, index: place })
const select = (condition: Expr, ifTrue: Expr, ifFalse: Expr): Expr => call('select', condition, ifTrue, ifFalse)
const all = (...conditions: readonly Expr[]): Expr => conditions.reduce((left, right) => call('and', left, right))
const between = (low: Expr, place: Expr, high: Expr): Expr => all(call('le', low, place), call('lt', place, high))

const load = ({ tensor, indices }: RowAccess, element: Expr): Expr => ({
  kind: 'load',
  type: 'f32',
  tensor,
  indices: [...indices.slice(0, -1), element],
})

/** Parts of a template as functions of their position: element `c` of a query, and of the key and the value at position `j`. */
interface Parts extends SoftmaxSlots {
  /** True if a row is computed; the others are stored as if their results were zero. */
  readonly isComputed: Expr
  readonly query: (c: Expr) => Expr
  readonly key: (j: Expr, c: Expr) => Expr
  readonly value: (j: Expr, c: Expr) => Expr
  readonly keys: Expr
  readonly headDim: Expr
  readonly valueDim: Expr
  readonly out: RowAccess
  readonly isOwned: Expr
}

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

function softmaxBody(parts: Parts): readonly Stmt[] {
  const { range, score, denominator, stored, keys, headDim, valueDim, out } = parts
  const j = index('j')
  const product: Expr = {
    kind: 'fold',
    type: 'f32',
    monoid: 'sum',
    length: headDim,
    index: '(k)',
    value: call('mul', parts.query(index('(k)')), parts.key(j, index('(k)'))),
  }
  const scored = substitute(score, new Map([['raw', product]]))
  const attended = all(parts.isComputed, between(range.lower, j, range.upper))
  const hidden = constant('f32', Number.NEGATIVE_INFINITY)
  const total = local('total')
  // A NaN total is not zero: it propagates, as in bodies and on devices.
  const isNone = call('eq', total, f32(0))
  const weight = at('(weights)', index('(w)'))
  const sum: Expr = {
    kind: 'fold',
    type: 'f32',
    monoid: 'sum',
    length: keys,
    index: '(w)',
    value: select(call('eq', weight, f32(0)), f32(0), call('mul', weight, parts.value(index('(w)'), index('c')))),
  }
  const row = { type: 'f32', length: keys } as const
  return [
    { kind: 'row', name: '(raws)', ...row, index: 'j', value: select(attended, scored, hidden) },
    {
      kind: 'row',
      name: '(scores)',
      ...row,
      index: '(j2)',
      value: select(call('lt', at('(raws)', index('(j2)')), f32(hiddenBelow)), hidden, at('(raws)', index('(j2)'))),
    },
    {
      kind: 'reduce',
      name: 'top',
      type: 'f32',
      monoid: 'max',
      length: keys,
      index: '(j3)',
      value: at('(scores)', index('(j3)')),
    },
    {
      kind: 'row',
      name: '(weights)',
      ...row,
      index: '(j4)',
      value: select(
        call('eq', at('(scores)', index('(j4)')), hidden),
        f32(0),
        call('exp', call('sub', at('(scores)', index('(j4)')), local('top'))),
      ),
    },
    {
      kind: 'reduce',
      name: 'total',
      type: 'f32',
      monoid: 'sum',
      length: keys,
      index: '(j5)',
      value: at('(weights)', index('(j5)')),
    },
    { kind: 'let', name: '(over)', type: 'f32', value: select(isNone, f32(1), denominator) },
    {
      kind: 'row',
      name: '(results)',
      type: 'f32',
      length: valueDim,
      index: 'c',
      value: select(isNone, f32(0), call('div', sum, local('(over)'))),
    },
    {
      kind: 'storeRow',
      tensor: out.tensor,
      rows: out.indices.slice(0, -1),
      length: valueDim,
      index: '(c2)',
      value: substitute(
        stored,
        new Map([
          ['result', at('(results)', index('(c2)'))],
          ['c', index('(c2)')],
        ]),
      ),
      when: parts.isOwned,
    },
  ]
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
