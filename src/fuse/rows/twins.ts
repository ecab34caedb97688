/**
 * Horizontally fused ops that apply the same computation to different tensors, such as a rotation of queries and one of keys. Statements are shared
 * where the parts agree, and select by the index along the joined axis where they read different tensors. Values are computed once, and only stores
 * are separate.
 */
import { call, index as indexOf } from '../../ir/build.js'
import { constructOf } from '../../ir/constructs/index.js'
import type { Expr } from '../../ir/expr.js'
import type { Stmt, StmtOf } from '../../ir/kernel.js'
import { mapStmt, rewrite, substitute } from '../../ir/walk.js'
import { equalExprs } from '../space/positions.js'

export type Stored = StmtOf<'store'> | StmtOf<'storeRow'>

export const isStored = (stmt: Stmt): stmt is Stored => stmt.kind === 'store' || stmt.kind === 'storeRow'

/**
 * One body for several parts; undefined if their computations differ, or if they store under different conditions.
 * @param bodies of the parts, at their indices along the joined axis
 * @param before condition that an index is before the end of each part; none for the last
 * @param holds condition that an index is in each part's range
 * @param fresh gives names that the kernel does not use
 */
export function twinBody(
  bodies: readonly (readonly Stmt[])[],
  before: readonly (Expr | undefined)[],
  holds: readonly Expr[],
  fresh: (base: string) => string,
): readonly Stmt[] | undefined {
  const [first, ...others] = bodies
  if (first === undefined || bodies.flat().some((stmt) => isStored(stmt) && stmt.when !== undefined)) return undefined
  let merged = first
  const named = [first]
  for (const [part, body] of others.entries()) {
    const [like, condition] = [namedLike(body, first), before[part]]
    if (like === undefined || condition === undefined) return undefined
    const both = merged.flatMap((stmt, at) => zipped(stmt, like[at], condition) ?? [])
    if (both.length < merged.length) return undefined
    merged = both
    named.push(like)
  }
  return merged.flatMap((stmt, at): readonly Stmt[] => {
    if (!isStored(stmt)) return [stmt]
    const [made, read] = sharedValue(stmt, fresh)
    const stores = named.flatMap((body, part): readonly Stored[] => {
      const [own, when] = [body[at], holds[part]]
      return own === undefined || when === undefined || !isStored(own) ? [] : [{ ...own, value: read(own), when }]
    })
    return [made, ...stores]
  })
}

/** A value that several stores share, computed once for them, and the expression by which a store reads it. */
function sharedValue(stmt: Stored, fresh: (base: string) => string): readonly [Stmt, (own: Stored) => Expr] {
  const { value } = stmt
  const { type } = value
  if (stmt.kind === 'store') {
    const name = fresh('stored')
    return [{ kind: 'let', name, type, value }, () => ({ kind: 'local', type, name })]
  }
  const [name, index] = [fresh('r'), fresh('c')]
  const made = substitute(value, new Map([[stmt.index, indexOf(index)]]))
  const row: Stmt = { kind: 'row', name, type, length: stmt.length, index, value: made }
  return [row, (own) => ({ kind: 'element', type, row: name, index: indexOf('index' in own ? own.index : index) })]
}

/** A body under the names of another with statements of the same form; stores keep their own index. */
function namedLike(body: readonly Stmt[], other: readonly Stmt[]): readonly Stmt[] | undefined {
  if (body.length !== other.length) return undefined
  const names = new Map<string, string>()
  const rename = (expr: Expr): Expr =>
    rewrite(expr, (node) => {
      if (node.kind === 'local' || node.kind === 'index') return { ...node, name: names.get(node.name) ?? node.name }
      return node.kind === 'element' ? { ...node, row: names.get(node.row) ?? node.row } : node
    })
  const made = body.flatMap((stmt, at): readonly Stmt[] => {
    const like = other[at]
    if (like === undefined || formOf(stmt) !== formOf(like)) return []
    const theirs = constructOf(like).defines(like)
    for (const [i, { name }] of constructOf(stmt).defines(stmt).entries()) names.set(name, theirs[i]?.name ?? name)
    if (isStored(stmt)) return [mapStmt(stmt, rename)]
    if ('index' in stmt && 'index' in like) names.set(stmt.index, like.index)
    const renamed = constructOf(stmt).rename(mapStmt(stmt, rename), (name) => names.get(name) ?? name)
    return ['index' in renamed && 'index' in like ? { ...renamed, index: like.index } : renamed]
  })
  return made.length === body.length ? made : undefined
}

/** A statement without its names, its tensor and its expressions. */
function formOf(stmt: Stmt): string {
  const none = indexOf('')
  const bare = constructOf(stmt).rename(
    mapStmt(stmt, () => none),
    () => '',
  )
  return JSON.stringify(bare, (key, value: unknown) => (key === 'tensor' || key === 'index' ? '' : value))
}

/** A statement for both parts, if every choice is between values of one type. */
function zipped(stmt: Stmt, other: Stmt | undefined, condition: Expr): Stmt | undefined {
  if (other === undefined) return undefined
  const theirs: Expr[] = []
  const along = 'index' in stmt && 'index' in other ? new Map([[other.index, indexOf(stmt.index)]]) : new Map<string, Expr>()
  mapStmt(other, (expr) => {
    theirs.push(substitute(expr, along))
    return expr
  })
  let [at, isWhole] = [0, true]
  const made = mapStmt(stmt, (expr) => {
    const both = either(expr, theirs[at++], condition)
    isWhole &&= both !== undefined
    return both ?? expr
  })
  return isWhole ? made : undefined
}

/** Merges two expressions: their common parts, and a `select` where they differ. */
function either(one: Expr, other: Expr | undefined, condition: Expr): Expr | undefined {
  const done = new Map<Expr, Map<Expr, Expr>>()
  const join = (a: Expr, b: Expr): Expr => {
    const known = done.get(a)?.get(b)
    if (known !== undefined) return known
    const made = joined(a, b)
    done.set(a, (done.get(a) ?? new Map<Expr, Expr>()).set(b, made))
    return made
  }
  const joined = (a: Expr, b: Expr): Expr => {
    if (equalExprs(a, b)) return a
    if (
      a.kind === 'call' &&
      b.kind === 'call' &&
      a.fn === b.fn &&
      a.form === b.form &&
      a.args.length === b.args.length &&
      a.type === b.type
    )
      return { ...a, args: a.args.map((arg, at) => join(arg, b.args[at] ?? arg)) }
    if (a.kind === 'element' && b.kind === 'element' && a.row === b.row) return { ...a, index: join(a.index, b.index) }
    return call('select', condition, a, b)
  }
  return other === undefined || other.type !== one.type ? undefined : join(one, other)
}
