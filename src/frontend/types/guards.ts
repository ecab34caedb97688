/**
 * Guards: conditions that hold where an expression is evaluated, in the branches of `?:` and to the right of `&&` and `||`. An index of another
 * dimension may be used where a condition keeps it below the dimension that it indexes, `c < e ? angle(t, c) : 0`. Used when an index is checked.
 */
import type { Expr } from '../../ir/expr.js'
import type { Lowering, Place } from '../static/values.js'

/** A condition, and whether it holds. */
export interface Guard {
  readonly condition: Expr
  readonly holds: boolean
}

/** Context of an expression under further guards. It is not at row level: a statement there would run unconditionally. */
export const guarded = ({ scope, level, guards = [] }: Place, ...more: readonly Guard[]): Place => ({
  scope,
  level: level === 'row' ? 'branch' : level,
  guards: [...guards, ...more],
})

/** True if the guards of an expression keep an index in [0, extent). */
export const isGuarded = (name: string, extent: string, { guards = [] }: Place, lowering: Lowering): boolean =>
  guards.some(({ condition, holds }) => implies(condition, holds, name, extent, lowering))

/** Negated comparisons. With NaN neither would hold, but indices are integers. */
const opposite: Readonly<Record<string, string>> = { lt: 'ge', ge: 'lt', gt: 'le', le: 'gt' }

function implies(given: Expr, holds: boolean, name: string, extent: string, lowering: Lowering): boolean {
  const condition = given.kind === 'local' ? (lowering.named.get(given.name) ?? given) : given
  if (condition.kind !== 'call') return false
  const { fn, args } = condition
  const [a, b] = args
  if (a === undefined) return false
  const each = (part: Expr): boolean => implies(part, holds, name, extent, lowering)
  if (fn === 'not') return implies(a, !holds, name, extent, lowering)
  if (b === undefined) return false
  // Either both parts hold, or an unknown one of them.
  if (fn === 'and') return holds ? each(a) || each(b) : each(a) && each(b)
  if (fn === 'or') return holds ? each(a) && each(b) : each(a) || each(b)
  const known = holds ? fn : opposite[fn]
  if (known === 'lt' || known === 'le') return atLeast(a, name) && atMost(b, extent, known === 'le', lowering)
  if (known === 'gt' || known === 'ge') return atLeast(b, name) && atMost(a, extent, known === 'ge', lowering)
  return fn === 'eq' && holds && (equals(a, b, name, extent, lowering) || equals(b, a, name, extent, lowering))
}

const isCount = (e: Expr | undefined, least: number): boolean => e?.kind === 'const' && Number(e.value) >= least

/** True if an expression is at least an index; indices are not negative. */
function atLeast(e: Expr, name: string): boolean {
  if (e.kind === 'index') return e.name === name
  if (e.kind !== 'call') return false
  const [a, b] = e.args
  if (a === undefined || b === undefined) return false
  if (e.fn === 'add')
    return (
      (atLeast(a, name) && (isCount(b, 0) || b.kind === 'index')) || (atLeast(b, name) && (isCount(a, 0) || a.kind === 'index'))
    )
  if (e.fn === 'mul') return (atLeast(a, name) && isCount(b, 1)) || (atLeast(b, name) && isCount(a, 1))
  return e.fn === 'maximum' && (atLeast(a, name) || atLeast(b, name))
}

/** True if an expression is at most the extent of a dimension; with `below`, less. */
function atMost(given: Expr, extent: string, below: boolean, lowering: Lowering): boolean {
  const e = given.kind === 'local' ? (lowering.named.get(given.name) ?? given) : given
  if (e.kind === 'dim') return !below && e.name === extent
  if (e.kind !== 'call') return false
  const [a, b] = e.args
  if (a === undefined || b === undefined) return false
  if (e.fn === 'sub') return atMost(a, extent, below && !isCount(b, 1), lowering) && (isCount(b, 0) || b.kind === 'index')
  if (e.fn === 'minimum') return atMost(a, extent, below, lowering) || atMost(b, extent, below, lowering)
  return e.fn === 'idiv' && atMost(a, extent, below, lowering) && isCount(b, 1)
}

/** True if an index equals one that runs over the dimension. */
const equals = (e: Expr, other: Expr, name: string, extent: string, lowering: Lowering): boolean =>
  e.kind === 'index' && e.name === name && other.kind === 'index' && lowering.spans.get(other.name) === extent
