/** The accuracy that an op asks for: `fast` for the fast form of every operation that has one, `exact` for none. */
import type { Expr, Form } from '../../ir/expr.js'
import { hasForms } from '../../ir/forms.js'
import type { Kernel, Stmt } from '../../ir/kernel.js'
import { mapStmt, rewrite } from '../../ir/walk.js'
import { reject } from '../diagnostics/reject.js'
import { type Field, staticString } from '../static/literals.js'

/** Reads `accuracy: 'fast'`; undefined if the op leaves the choice to the compiler. */
export function readAccuracy(field: Field | undefined): Form | undefined {
  if (field === undefined) return undefined
  const given = staticString(field.value)
  if (given === 'fast' || given === 'exact') return given
  return reject(
    'signature',
    field.value,
    `expected the accuracy 'fast' or 'exact', got "${given}"`,
    "write accuracy: 'fast', or leave it out: operations are then fast where the storage type of the results hides it",
  )
}

/** The kernel with every operation in that form, those of its monoids and recurrences included. */
export function inAccuracy(kernel: Kernel, form: Form | undefined): Kernel {
  if (form === undefined) return kernel
  const expr = (root: Expr): Expr => rewrite(root, (node) => (hasForms(node) ? { ...node, form } : node))
  // Statements share their monoids.
  const own = new Map<object, object>()
  const once = <T extends object>(declared: T, make: () => T): T => {
    const made = (own.get(declared) ?? make()) as T
    own.set(declared, made)
    return made
  }
  const body = kernel.body.map((stmt): Stmt => {
    const made = mapStmt(stmt, expr)
    if (made.kind === 'merge' || made.kind === 'mergeScan') {
      const { monoid } = made
      return { ...made, monoid: once(monoid, () => ({ ...monoid, combine: monoid.combine.map(expr) })) }
    }
    if (made.kind !== 'foldRow') return made
    const { fold } = made
    return { ...made, fold: once(fold, () => ({ ...fold, next: fold.next.map(expr) })) }
  })
  return { ...kernel, body }
}
