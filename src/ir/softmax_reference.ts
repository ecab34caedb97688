/**
 * Softmax of an attention template as statements of a row program: scores, weights and results of one query row. attention_reference.ts
 * supplies the parts of either form of attention.
 */
import { call, constant, f32, index, local } from './build.js'
import type { Expr } from './expr.js'
import type { Stmt } from './kernel.js'
import type { RowAccess, SoftmaxSlots } from './template.js'
import { substitute } from './walk.js'

/** Scores below this hide a key, as -Infinity does: masks of large negative numbers and of -Infinity mean the same. */
export const hiddenBelow = -1e29

const at = (row: string, place: Expr): Expr => ({ kind: 'element', type: 'f32', row, index: place })
export const select = (condition: Expr, ifTrue: Expr, ifFalse: Expr): Expr => call('select', condition, ifTrue, ifFalse)
export const all = (...conditions: readonly Expr[]): Expr => conditions.reduce((left, right) => call('and', left, right))
export const between = (low: Expr, place: Expr, high: Expr): Expr => all(call('le', low, place), call('lt', place, high))

/** Parts of a template as functions of their position: element `c` of a query, and of the key and the value at position `j`. */
export interface Parts extends SoftmaxSlots {
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

const hidden = constant('f32', Number.NEGATIVE_INFINITY)

export const softmaxBody = (parts: Parts): readonly Stmt[] => [
  ...scoreRows(parts),
  ...weightRows(parts),
  ...resultRows(parts),
  ...rowValues(parts),
]

/** Row `(scores)`, in which masked keys are -Infinity, and its maximum `top`. */
function scoreRows({ range, score, keys, headDim, isComputed, query, key }: Parts): readonly Stmt[] {
  const j = index('j')
  const product: Expr = {
    kind: 'fold',
    type: 'f32',
    monoid: 'sum',
    length: headDim,
    index: '(k)',
    value: call('mul', query(index('(k)')), key(j, index('(k)'))),
  }
  const scored = substitute(score, new Map([['raw', product]]))
  const attended = all(isComputed, between(range.lower, j, range.upper))
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
  ]
}

/** Row `(weights)`, not normalised, and its sum `total`. */
function weightRows({ keys }: Parts): readonly Stmt[] {
  return [
    {
      kind: 'row',
      name: '(weights)',
      type: 'f32',
      length: keys,
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
  ]
}

/** Row `(results)`, and its store. */
function resultRows({ denominator, stored, keys, valueDim, out, value, isOwned }: Parts): readonly Stmt[] {
  // A NaN total is not zero: it propagates, as in bodies and on devices.
  const isNone = call('eq', local('total'), f32(0))
  const weight = at('(weights)', index('(w)'))
  const sum: Expr = {
    kind: 'fold',
    type: 'f32',
    monoid: 'sum',
    length: keys,
    index: '(w)',
    value: select(call('eq', weight, f32(0)), f32(0), call('mul', weight, value(index('(w)'), index('c')))),
  }
  return [
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
      when: isOwned,
    },
  ]
}

/** Stores of the values of a row. */
const rowValues = ({ perRow = [], isOwned }: Parts): readonly Stmt[] =>
  perRow.map((each) => ({ kind: 'store', ...each, when: isOwned }))
