/**
 * Windows that lie inside of a tensor along all axes but the last. Most points are such: one test decides, and their version has only the conditions
 * along the last axis. Runs on kernels whose windows are written out.
 *
 *     x0[j] = i - 1 >= 0 && j - 1 >= 0 ? x[i - 1, j - 1] : 0    where i - 1 >= 0: x0[j] = j - 1 >= 0 ? x[i - 1, j - 1] : 0
 */
import { call, constant } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import type { Kernel, Stmt } from '../../ir/kernel.js'
import { mapStmt } from '../../ir/walk.js'
import { contains, hashOf, rewriteDown } from '../normalise/rewrite.js'
import { simplified } from './written_out.js'

/** A kernel for points at which a condition holds. */
export interface Inside {
  readonly kernel: Kernel
  readonly when: Expr
}

/** The kernel without the conditions of its loads that are the same along its rows; undefined if there are none. */
export function insideOf(kernel: Kernel, axes: ReadonlySet<string>): Inside | undefined {
  const known = new Map<string, { readonly condition: Expr; readonly holds: boolean }>()
  const isOfPoint = (e: Expr): boolean =>
    !contains(e, (node) => node.kind === 'load' || node.kind === 'element' || node.kind === 'local' || node.kind === 'fold') &&
    !contains(e, (node) => node.kind === 'index' && !axes.has(node.name))
  const assume = (e: Expr, holds: boolean): void => {
    const [a, b] = e.kind === 'call' ? e.args : []
    if (e.kind === 'call' && e.fn === 'not' && a !== undefined) assume(a, !holds)
    else if (e.kind === 'call' && e.fn === 'and' && holds && a !== undefined && b !== undefined) {
      assume(a, true)
      assume(b, true)
    } else if (isOfPoint(e) && !known.has(hashOf(e))) known.set(hashOf(e), { condition: e, holds })
  }
  for (const s of kernel.body) {
    if (s.kind === 'row' && s.value.kind === 'call' && s.value.fn === 'select' && s.value.args[1]?.kind === 'load')
      assume(s.value.args[0] ?? s.value, true)
    if (s.kind === 'storeRow' && s.when !== undefined) assume(s.when, true)
  }
  if (known.size === 0) return undefined
  const written = (e: Expr): Expr =>
    simplified(
      rewriteDown(e, (node) => {
        const fact = node.type === 'bool' ? known.get(hashOf(node)) : undefined
        return fact && constant('bool', fact.holds)
      }),
    )
  const body = kernel.body.map((s): Stmt => {
    const made = mapStmt(s, written)
    if (made.kind !== 'storeRow' || made.when?.kind !== 'const' || made.when.value !== true) return made
    const { when: _, ...rest } = made
    return rest
  })
  const tests = [...known.values()].map(({ condition, holds }) => (holds ? condition : call('not', condition)))
  return { kernel: { ...kernel, body }, when: tests.reduce((all, test) => call('and', all, test)) }
}
