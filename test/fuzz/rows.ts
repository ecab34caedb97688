/** Statements of a body along a row: reductions, rows, and one thing that is special about it. */

import { along, type Body, numeric, withNumber, withRow } from './body.js'
import { call, type Expr, named, reduce } from './describe.js'
import type { Context, OpDraft } from './draft.js'
import { carry, fold, monoid } from './in_order.js'
import { argsort, counted, histogram, longTopK, segmentSum, threshold, topK } from './ranked.js'

/** True if an expression reads rows computed in order: a row of such expressions is read in order as well. */
function readsOrdered(e: Expr, rows: Context['rows']): boolean {
  const inner = (each: Expr): boolean => readsOrdered(each, rows)
  switch (e.kind) {
    case 'element':
      return rows.some(({ name, ordered }) => ordered && name === e.row) || inner(e.at)
    case 'call':
      return e.args.some(inner)
    case 'load':
      return e.at.some(inner)
    case 'reduce':
      return inner(e.loop.value)
    default:
      return false
  }
}

/** Reductions and rows. */
export function addStatements(draft: OpDraft, body: Body, count: number): Body {
  const { random } = draft
  if (count === 0) return body
  if (random.chance(0.12)) return addStatements(draft, condition(draft, body), count - 1)
  const isRow = random.chance(0.4)
  const value = draft.number(3, along(body))
  const ordered = readsOrdered(value, body.at.rows)
  if (isRow) {
    const name = draft.fresh('v')
    draft.body.push({ kind: 'row', name, loop: { length: body.n, index: 'c', value } })
    return addStatements(draft, withRow(body, name, numeric(value), ordered), count - 1)
  }
  const name = draft.fresh('t')
  const fn = random.pick(['sum', 'sum', 'max', 'min', 'argmax', 'argmin'] as const)
  const whole = numeric(value) === 'i32' && (fn === 'max' || fn === 'min')
  // The maximum of zero elements is defined for floats, not for integers.
  const made = reduce(fn, body.n, 'c', whole ? call('f32', 'toFloat', value) : value)
  draft.body.push({ kind: 'const', name, value: made })
  const scaled = fn === 'sum' && made.type === 'f32' && random.chance(0.6)
  if (!scaled) return addStatements(draft, withNumber(body, name, numeric(made)), count - 1)
  const mean = draft.fresh('t')
  draft.body.push({ kind: 'const', name: mean, value: call('f32', 'div', named(name, 'f32'), named(body.n)) })
  return addStatements(draft, withNumber(body, mean, 'f32'), count - 1)
}

/** A condition of the row, or one of each element. */
function condition(draft: OpDraft, body: Body): Body {
  const name = draft.fresh('is')
  const isRow = draft.random.chance(0.7)
  const value = draft.boolean(2, isRow ? along(body) : body.at)
  draft.body.push(isRow ? { kind: 'row', name, loop: { length: body.n, index: 'c', value } } : { kind: 'const', name, value })
  return isRow ? withRow(body, name, 'bool', readsOrdered(value, body.at.rows)) : withNumber(body, name, 'bool')
}

export type Special =
  | 'scan'
  | 'monoid'
  | 'fold'
  | 'topK'
  | 'longTopK'
  | 'argsort'
  | 'threshold'
  | 'segmentSum'
  | 'histogram'
  | 'counted'
  | 'carry'

/** The thing that is special about a body. */
export function addSpecial(draft: OpDraft, special: Special, body: Body): Body {
  switch (special) {
    case 'scan':
      return scan(draft, body)
    case 'monoid':
      return monoid(draft, body)
    case 'fold':
      return fold(draft, body)
    case 'topK':
      return topK(draft, body)
    case 'longTopK':
      return longTopK(draft, body)
    case 'argsort':
      return argsort(draft, body)
    case 'threshold':
      return threshold(draft, body)
    case 'segmentSum':
      return segmentSum(draft, body)
    case 'histogram':
      return histogram(draft, body)
    case 'counted':
      return counted(draft, body)
    case 'carry':
      return carry(draft, body)
  }
}

function scan(draft: OpDraft, body: Body): Body {
  const value = draft.number(2, along(body))
  const name = draft.fresh('s')
  draft.body.push({ kind: 'scan', name, loop: { length: body.n, index: 'c', value } })
  return withRow(body, name, numeric(value), !draft.random.chance(0.2) || readsOrdered(value, body.at.rows))
}
