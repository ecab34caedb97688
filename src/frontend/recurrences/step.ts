/**
 * Closes the step of a recurrence. Expressions that do not depend on the carried values are hoisted: they are computed once per element,
 * before any step runs. The rest reads carried values, hoisted values and constants. A step that cannot be split is refused. Runs when a
 * body calls `fold`.
 */
import type { Node } from 'ts-morph'
import { call, constant, i32, local } from '../../ir/build.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import { hashOf } from '../../ir/expr_hash.js'
import { printExpr } from '../../ir/print.js'
import { mapOperands, operands, visit, visitUp } from '../../ir/walk.js'
import { reject } from '../diagnostics/reject.js'
import type { Lowering } from '../static/values.js'

export interface Closed {
  readonly taken: readonly Expr[]
  /** The locals that stand for the hoisted expressions. */
  readonly names: readonly string[]
  readonly next: readonly Expr[]
}

/** @param node the source of the step */
export function closeStep(made: readonly Expr[], carried: ReadonlySet<string>, node: Node, lowering: Lowering): Closed {
  const carries = new Set<Expr>()
  for (const root of made)
    visitUp(root, (e) => {
      if ((e.kind === 'local' && carried.has(e.name)) || operands(e).some((each) => carries.has(each))) carries.add(e)
    })
  const known = new Map<string, Expr>()
  const taken: Expr[] = []
  const names: string[] = []
  /** Hoists an expression of the element alone and returns its local; a boolean is passed as an integer. */
  const take = (e: Expr): Expr => {
    if (e.kind === 'const') return e
    const before = known.get(hashOf(e))
    if (before !== undefined) return before
    const [value, type] = e.type === 'bool' ? ([call('select', e, i32(1), i32(0)), 'i32'] as const) : ([e, e.type] as const)
    const name = lowering.unique('taken', 'derived')
    taken.push(value)
    names.push(name)
    const made = e.type === 'bool' ? call('ne', local(name, type), i32(0)) : local(name, type)
    known.set(hashOf(e), made)
    return made
  }
  const done = new Map<Expr, Expr>()
  const close = (e: Expr): Expr => {
    const before = done.get(e)
    if (before !== undefined) return before
    if (!carries.has(e)) return take(e)
    refuseCarried(e, carries, node)
    if (e.kind === 'call') for (const branch of branches(e, carries)) checkTaken(branch, carries, node, lowering)
    const closed = e.kind === 'local' ? e : mapOperands(e, close)
    done.set(e, closed)
    return closed
  }
  return { next: made.map(close), taken, names }
}

function refuseCarried(e: Expr, carries: ReadonlySet<Expr>, node: Node): void {
  if (e.kind === 'load' || e.kind === 'element')
    reject(
      'row',
      node,
      `${printExpr(e)} is read at an index that depends on carried values`,
      'what a step reads is loaded before the steps run: read a place that follows from the index, and choose with condition ? a : b',
    )
  if (e.kind === 'fold' && operands(e).some((each) => carries.has(each)))
    reject(
      'row',
      node,
      `the ${e.monoid} over ${e.index} in the step reads carried values`,
      'reduce before the fold, or write the terms out',
    )
}

/** Operands that are evaluated only where a condition on carried values holds. */
function branches({ fn, args }: ExprOf<'call'>, carries: ReadonlySet<Expr>): readonly Expr[] {
  const [condition, ...others] = args
  const isConditional = fn === 'select' || fn === 'and' || fn === 'or'
  return isConditional && condition !== undefined && carries.has(condition) ? others : []
}

/** A branch is computed for every element, so it must not fault where the condition does not hold. */
function checkTaken(branch: Expr, carries: ReadonlySet<Expr>, node: Node, lowering: Lowering): void {
  visit(branch, (e) => {
    if (carries.has(e)) return
    const isPlain = (at: Expr): boolean => at.kind === 'index' && lowering.spans.has(at.name)
    const divides = e.kind === 'call' && (e.fn === 'idiv' || e.fn === 'mod') && e.args[1]?.kind !== 'const'
    if ((e.kind === 'load' && !e.indices.every(isPlain)) || divides)
      reject(
        'branch',
        node,
        `${printExpr(e)} is in a branch that depends on carried values, but is computed for every element`,
        'make it a row before the fold, row(n, (t) => ...), which is defined for every element',
      )
  })
}

/** Reduction that selects one element: the max over that element alone, or for integers the sum. */
export const lastOf = (element: Expr, isLast: Expr): { readonly monoid: 'max' | 'sum'; readonly value: Expr } =>
  element.type === 'f32'
    ? { monoid: 'max', value: call('select', isLast, element, constant('f32', Number.NEGATIVE_INFINITY)) }
    : { monoid: 'sum', value: call('select', isLast, element, i32(0)) }
