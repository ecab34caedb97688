/**
 * Simplification: folds constants with the intrinsic's own `evaluate`, removes neutral elements of integer operations and values that
 * nothing reads. Float identities such as `x + 0` are left alone: they change the sign of zero. Runs after
 * lowering and after fusion; the result computes exactly what the kernel did.
 */
import { constant } from './build.js'
import { constructOf } from './constructs/index.js'
import type { Expr, ExprOf } from './expr.js'
import { intrinsic } from './intrinsics.js'
import type { Kernel, Stmt } from './kernel.js'
import { mapStmt, rewrite, stmtExprs, visit } from './walk.js'

const minI32 = -(2 ** 31)
const maxI32 = 2 ** 31 - 1

const constValue = (expr: Expr | undefined): number | boolean | undefined => (expr?.kind === 'const' ? expr.value : undefined)

function foldConstants(expr: ExprOf<'call'>): Expr | undefined {
  const values = expr.args.flatMap((arg) => constValue(arg) ?? [])
  if (values.length !== expr.args.length) return undefined
  const result = intrinsic(expr.fn).evaluate(...values)
  if (expr.type !== 'i32') return constant(expr.type, result)
  const value = Number(result) + 0
  return Number.isInteger(value) && value >= minI32 && value <= maxI32 ? constant('i32', value) : undefined
}

function integerIdentity({ fn, args }: ExprOf<'call'>): Expr | undefined {
  const [a, b] = args
  const left = constValue(a)
  const right = constValue(b)
  switch (fn) {
    case 'add':
      return right === 0 ? a : left === 0 ? b : undefined
    case 'mul':
      return right === 1 ? a : left === 1 ? b : undefined
    case 'sub':
    case 'shiftLeft':
    case 'shiftRight':
      return right === 0 ? a : undefined
    case 'idiv':
      return right === 1 ? a : undefined
    default:
      return undefined
  }
}

function chooseBranch({ fn, args }: ExprOf<'call'>): Expr | undefined {
  const [a, b, c] = args
  const known = constValue(a)
  if (known === undefined) return undefined
  if (fn === 'select') return known ? b : c
  if (fn === 'and') return known ? b : a
  if (fn === 'or') return known ? a : b
  return undefined
}

/** Simplifies one expression. */
export const simplifyExpr = (expr: Expr): Expr =>
  rewrite(expr, (node) => {
    if (node.kind !== 'call') return node
    return foldConstants(node) ?? chooseBranch(node) ?? (node.type === 'i32' ? integerIdentity(node) : undefined) ?? node
  })

/** Locals and rows that the statements read. */
function readNames(stmts: readonly Stmt[]): ReadonlySet<string> {
  const names = new Set<string>()
  for (const expr of stmts.flatMap(stmtExprs)) {
    visit(expr, (node) => {
      if (node.kind === 'local') names.add(node.name)
      if (node.kind === 'element') names.add(node.row)
    })
  }
  return names
}

/** Drops dead values, last to first, so that values which only dead ones read are dropped too. */
function dropUnread(body: readonly Stmt[]): Stmt[] {
  let live: Stmt[] = []
  for (const stmt of [...body].reverse()) {
    const { traits, defines } = constructOf(stmt)
    const read = readNames(live)
    if (traits.makes === 'output' || defines(stmt).some(({ name }) => read.has(name))) live = [stmt, ...live]
  }
  return live
}

/** Simplifies a whole kernel. */
export const simplifyKernel = (kernel: Kernel): Kernel => ({
  ...kernel,
  body: dropUnread(kernel.body.map((stmt) => mapStmt(stmt, simplifyExpr))),
})
