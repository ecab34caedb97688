/**
 * Third pass of the schedule: hoists loop invariants out of a pass, eliminates common subexpressions within it, and drops values that are never
 * read. Only expressions that cannot fault move. A load that is not proven in bounds, an element of a row in shared memory, and a quotient stay
 * guarded by the conditions of the body.
 *
 *     pass over c: store y[m, c] = v[c] * rsqrt(variance + eps)
 * becomes
 *     once a row:  row_rsqrt = rsqrt(variance + eps)
 *     pass over c: store y[m, c] = v[c] * row_rsqrt
 */
import { index } from '../../ir/build.js'
import { type Expr, type ExprOf, inPlaceOf } from '../../ir/expr.js'
import type { StmtOf } from '../../ir/kernel.js'
import { mapOperands } from '../../ir/walk.js'
import { passStatementOf, rowStatementOf } from '../constructs/index.js'
import { dropUnread } from './dead_values.js'
import { freshName, type NormalKernel, type RowStmt, rowExprs } from './normal.js'
import { mapRow, type Pass, type PassRow, passValues, type Step } from './passes.js'
import { contains, hashOf, rewriteDown, rewritePaths } from './rewrite.js'

export function simplifySteps(kernel: NormalKernel, steps: readonly Step[]): Step[] {
  const taken = new Set(kernel.taken)
  const hoisted = new Map<string, ExprOf<'local'>>()
  const simplified = steps.flatMap((step): Step[] => {
    const lets: StmtOf<'let'>[] = []
    const hoist = (e: Expr): Expr => hoistInvariants(e, kernel, taken, hoisted, lets)
    const made = (): Step[] => {
      if (step.kind === 'pass') return [{ kind: 'pass', pass: shareInPass(mapPass(step.pass, hoist), kernel, taken) }]
      const { searches } = rowStatementOf(step)
      return searches ? [rowStatementOf(step).mapValues(step, hoist)] : shareInScalar(step, kernel, taken)
    }
    const rest = made()
    return [...lets.flatMap((scalar) => shareInScalar(scalar, kernel, taken)), ...rest]
  })
  return dropUnread(simplified)
}

/** True if the expression may be evaluated speculatively: it cannot fault. */
export const isSpeculatable = (e: Expr, kernel: Pick<NormalKernel, 'inBounds' | 'shared'>): boolean =>
  !contains(
    e,
    (node) =>
      (node.kind === 'load' && !kernel.inBounds(node)) ||
      (node.kind === 'element' && kernel.shared.has(node.row)) ||
      mayDivideByZero(node),
  )

export function mayDivideByZero(e: Expr): boolean {
  if (e.kind !== 'call' || (e.fn !== 'idiv' && e.fn !== 'mod')) return false
  const divisor = e.args[1]
  return divisor?.kind !== 'const' || divisor.value === 0
}

const mapPass = (pass: Pass, f: (e: Expr) => Expr): Pass => ({
  ...pass,
  rows: pass.rows.map((row) => mapRow(row, f)),
  statements: pass.statements.map((s) => passStatementOf(s).mapValues(s, f)),
})

/** Hoists the largest loop-invariant subexpressions into scalars of the row. */
const hoistInvariants = (
  root: Expr,
  kernel: NormalKernel,
  taken: Set<string>,
  hoisted: Map<string, ExprOf<'local'>>,
  lets: StmtOf<'let'>[],
): Expr =>
  rewriteDown(root, (e) => {
    const known = hoisted.get(hashOf(e))
    if (known !== undefined) return known
    if (e.kind !== 'call' && e.kind !== 'load') return undefined
    if (isPlainSum(e, kernel) || !isInvariant(e, kernel) || !isSpeculatable(e, kernel)) return undefined
    const name = freshName(`row_${e.kind === 'call' ? e.fn : e.tensor}`, taken)
    const local: ExprOf<'local'> = { kind: 'local', type: e.type, name }
    hoisted.set(hashOf(e), local)
    lets.push({ kind: 'let', name, type: e.type, value: e })
    return local
  })

const isPlainSum = (e: Expr, { hasPlainSums }: NormalKernel): boolean =>
  hasPlainSums && e.kind === 'call' && e.type === 'i32' && (e.fn === 'add' || e.fn === 'sub' || e.fn === 'mul')

/** True if an expression depends on the row's own indices only: on no loop index, no index of a serial reduction and no row element. */
const isInvariant = (e: Expr, kernel: NormalKernel): boolean =>
  !contains(e, (node) => {
    if (node.kind === 'element' || node.kind === 'fold') return true
    return node.kind === 'index' && node.name !== kernel.pieces?.index && !kernel.axes.some((axis) => axis.index === node.name)
  })

/** Names common subexpressions of a pass right before their first use. */
function shareInPass(pass: Pass, kernel: NormalKernel, taken: Set<string>): Pass {
  const computed = pass.rows.flatMap((row) => (row.kind === 'loaded' ? [] : rowExprs(row)))
  const rows: PassRow[] = []
  const conditional = new Set(
    pass.statements.flatMap((s) => (passStatementOf(s).isConditional(s) ? passStatementOf(s).values(s) : [])),
  )
  const share = sharer([...computed, ...passValues(pass)], conditional, kernel, (value) => {
    const name = freshName('common', taken)
    rows.push({ kind: 'computed', name, type: value.type, loop: pass.loop, value, keep: false })
    return inPlaceOf(value, { kind: 'element', type: value.type, row: name, index: index(pass.loop.index) })
  })
  for (const row of pass.rows) rows.push(mapRow(row, share))
  const statements = pass.statements.map((s) => passStatementOf(s).mapValues(s, share))
  return { ...pass, rows, statements }
}

/** Names common subexpressions of one statement that runs once per row. */
function shareInScalar(step: RowStmt, kernel: NormalKernel, taken: Set<string>): RowStmt[] {
  const lets: StmtOf<'let'>[] = []
  const statement = rowStatementOf(step)
  const values = statement.values(step)
  const share = sharer(values, new Set(statement.isConditional(step) ? values : []), kernel, (value) => {
    const name = freshName('common', taken)
    lets.push({ kind: 'let', name, type: value.type, value })
    return { kind: 'local', type: value.type, name }
  })
  const shared = statement.mapValues(step, share)
  return [...lets, shared]
}

/**
 * Rewrites `roots` so that each computation with two different uses is replaced by the result of `define`. Those of the roots that are
 * `conditional` may not be computed at all.
 */
function sharer(
  roots: readonly Expr[],
  conditional: ReadonlySet<Expr>,
  kernel: NormalKernel,
  define: (value: Expr) => Expr,
): (e: Expr) => Expr {
  const common = findCommon(roots, conditional, kernel)
  const named = new Map<string, Expr>()
  const share = (e: Expr): Expr =>
    rewriteDown(e, (node) => {
      const key = hashOf(node)
      if (!common.has(key)) return undefined
      const known = named.get(key) ?? define(mapOperands(node, share))
      named.set(key, known)
      return known
    })
  return common.size === 0 ? (e) => e : share
}

/** Hashes of calls and loads that have at least two different users and may be evaluated before the first of them. */
function findCommon(roots: readonly Expr[], conditional: ReadonlySet<Expr>, kernel: NormalKernel): Set<string> {
  const uses = new Map<string, number>()
  const movable = new Set<string>()
  const users = new Set<string>()
  // An index is already a name; renamed, it would no longer be an index of its loop.
  const use = (e: Expr): void => {
    if (e.kind !== 'index' && !isPlainSum(e, kernel)) uses.set(hashOf(e), (uses.get(hashOf(e)) ?? 0) + 1)
  }
  for (const root of roots) {
    use(root)
    rewritePaths(root, (e, always) => {
      if (e.kind === 'fold') return e
      if ((always && !conditional.has(root)) || isSpeculatable(e, kernel)) movable.add(hashOf(e))
      // A user counts once, however often the body repeats it.
      if (!users.has(hashOf(e)) && (e.kind === 'call' || e.kind === 'load')) {
        users.add(hashOf(e))
        for (const operand of e.kind === 'call' ? e.args : e.indices)
          if (operand.kind === 'call' || operand.kind === 'load') use(operand)
      }
      return undefined
    })
  }
  return new Set([...uses].filter(([key, count]) => count > 1 && movable.has(key)).map(([key]) => key))
}
