/** Signs of floats: which expressions of a kernel are never negative, whatever its inputs are. */
import type { Stmt } from '../constructs/index.js'
import { constructOf } from '../constructs/index.js'
import type { Expr, ExprOf } from '../expr.js'
import { hashOf } from '../expr_hash.js'
import type { IntrinsicName } from '../intrinsics.js'
import type { Kernel } from '../kernel.js'
import { visitUp } from '../walk.js'

const always: ReadonlySet<IntrinsicName> = new Set(['exp', 'exp2', 'square', 'abs', 'sqrt', 'rsqrt', 'uniform'] as const)
const ofBoth: ReadonlySet<IntrinsicName> = new Set(['add', 'mul', 'div', 'minimum'] as const)
const reducing: ReadonlySet<string> = new Set(['sum', 'max', 'min'])

/** Test for expressions of a kernel that are never negative (they may be NaN). */
export function neverNegative({ body }: Pick<Kernel, 'body'>): (expr: Expr) => boolean {
  const names = new Set<string>()
  const known = new Map<Expr, boolean>()
  const test = (expr: Expr): boolean => {
    visitUp(
      expr,
      (node) =>
        known.has(node) ||
        known.set(
          node,
          isPositive(node, (e) => known.get(e) === true, names),
        ),
    )
    return known.get(expr) === true
  }
  for (const stmt of body)
    if (definesPositive(stmt, test)) for (const { name } of constructOf(stmt).defines(stmt)) names.add(name)
  return test
}

/** True if the value that a statement names is never negative. */
function definesPositive(stmt: Stmt, test: (expr: Expr) => boolean): boolean {
  if (stmt.kind === 'let' || stmt.kind === 'row') return test(stmt.value)
  return (stmt.kind === 'reduce' || stmt.kind === 'scan') && reducing.has(stmt.monoid) && test(stmt.value)
}

function isPositive(node: Expr, known: (expr: Expr) => boolean, names: ReadonlySet<string>): boolean {
  switch (node.kind) {
    case 'const':
      return Number(node.value) >= 0
    case 'dim':
    case 'index':
      return true
    case 'local':
      return names.has(node.name)
    case 'element':
      return names.has(node.row)
    case 'fold':
      return reducing.has(node.monoid) && known(node.value)
    case 'call':
      return isPositiveCall(node, known)
    default:
      return false
  }
}

function isPositiveCall({ fn, type, args }: ExprOf<'call'>, known: (expr: Expr) => boolean): boolean {
  const [a, b, c] = args
  if (a === undefined) return false
  if (fn === 'toFloat') return known(a)
  // Integer arithmetic may wrap around.
  if (type !== 'f32') return false
  if (always.has(fn)) return true
  if (fn === 'mul' && b !== undefined && hashOf(a) === hashOf(b)) return true
  if (fn === 'select') return b !== undefined && c !== undefined && known(b) && known(c)
  if (fn === 'maximum') return b !== undefined && (known(a) || known(b))
  return ofBoth.has(fn) && b !== undefined && known(a) && known(b)
}
