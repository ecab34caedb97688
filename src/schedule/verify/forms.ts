/** Verifier of the choice of forms: a kernel computes what it did, each operation exactly or in the fast form that its function has. */
import type { Expr } from '../../ir/expr.js'
import { labelOf } from '../../ir/expr_hash.js'
import { hasForms, isFast } from '../../ir/forms.js'
import type { Kernel } from '../../ir/kernel.js'
import { operands, stmtExprs } from '../../ir/walk.js'

/** @throws internal if an expression changed in anything but its forms */
export function verifyForms(before: Kernel, after: Kernel): void {
  const made = after.body.flatMap(stmtExprs)
  const pairs = before.body.flatMap(stmtExprs).map((given, i): Pair => [given, made[i]])
  if (pairs.length !== made.length || !areChosen(pairs))
    throw new Error(`internal: after choosing forms: kernel ${before.name} computes something else`)
}

type Pair = readonly [given: Expr, made: Expr | undefined]

/** True if expressions are others in other forms. Not recursive, so that expressions of any depth work. */
function areChosen(pairs: readonly Pair[]): boolean {
  const same = new Map<Expr, Expr>()
  const waiting = [...pairs]
  for (let pair = waiting.pop(); pair !== undefined; pair = waiting.pop()) {
    const [given, made] = pair
    if (given === made || same.get(given) === made) continue
    const inner = made === undefined ? undefined : innerPairs(given, made)
    if (made === undefined || inner === undefined) return false
    same.set(given, made)
    waiting.push(...inner)
  }
  return true
}

/** Operands that have to agree; undefined if the nodes themselves do not. */
function innerPairs(given: Expr, made: Expr): readonly Pair[] | undefined {
  const [from, to] = [operands(given), operands(made)]
  const isFastCall = made.kind === 'call' && isFast(made.form)
  if (isFastCall && !hasForms(given)) return undefined
  const [a, b] = from
  const [factor, reciprocal] = to
  if (isFastCall && made.fn === 'mul' && a !== undefined && b?.kind === 'const' && reciprocal?.kind === 'const')
    return given.kind === 'call' && given.fn === 'div' && reciprocal.value === 1 / Number(b.value) ? [[a, factor]] : undefined
  const isNode = given.kind === made.kind && given.type === made.type && labelOf(open(given)) === labelOf(open(made))
  return isNode && from.length === to.length ? from.map((operand, i) => [operand, to[i]]) : undefined
}

/** A node without its form. */
function open(expr: Expr): Expr {
  if (expr.kind !== 'call') return expr
  const { form: _, ...rest } = { form: undefined, ...expr }
  return rest
}
