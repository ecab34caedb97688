/**
 * Positions: the meaning of a member's index variables in the fused kernel. An index over a split dimension stands for one position along each of
 * its atoms; used as a number, it is their row-major combination.
 */
import { call, dim as dimExpr, i32, index as indexExpr } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import { sameExpr } from '../../ir/expr_hash.js'
import type { Names } from './names.js'
import { illegal, type Member, type Space } from './space.js'

interface Position {
  readonly atoms: readonly number[]
  readonly exprs: readonly Expr[]
}

export const equalExprs = (a: Expr | undefined, b: Expr | undefined): boolean =>
  a === b || (a !== undefined && b !== undefined && sameExpr(a, b))

/** The positions of one member while one of its statements is copied. */
export class Positions {
  readonly #names: Names
  readonly #byIndex = new Map<string, Position>()

  /**
   * @param group `lends` for a member that is not run: axes that the fused kernel does not run along get indices that a reader replaces
   * @param loop the statement's loop: the member's index, the atoms it spans, and the fused kernel's index along the last of them
   * @throws usage `plan.illegal` for a member that runs along an axis that the fused kernel does not
   */
  constructor(
    group: {
      readonly name: string
      readonly space: Space
      readonly names: Names
      readonly members: readonly Member[]
      readonly lends: boolean
    },
    member: Member,
    loop: { readonly index: string; readonly atoms: readonly number[]; readonly inner: string } | undefined,
  ) {
    const { space, names } = group
    this.#names = names
    const along = (atom: number): Expr => {
      if (space.rows.includes(atom)) return indexExpr(names.rowIndex(atom))
      if (space.axes.isUnit(atom)) return i32(0)
      if (group.lends) return indexExpr(`at_${names.atom(atom)}`)
      const own = member.node.name
      const other = group.members.find((candidate) => candidate !== member)?.node.name
      if (other === undefined)
        throw illegal(group.name, own, own, `${own} has a reduction for each element, which no row has in common`)
      const named = (atoms: readonly number[]): string => `"${atoms.map(names.atom).join(' ')}"`
      const along = `${own} runs along ${names.atom(atom)}, and the kernel over rows ${named(space.rows)} along ${named([space.inner])}`
      throw illegal(group.name, own, other, `their iteration spaces differ: ${along}`)
    }
    for (const axis of member.kernel.rows) {
      const atoms = space.atomsOf(member, axis.dim)
      this.#byIndex.set(axis.index, { atoms, exprs: atoms.map(along) })
    }
    if (loop === undefined) return
    const last = indexExpr(loop.inner)
    this.#byIndex.set(loop.index, { atoms: loop.atoms, exprs: [...loop.atoms.slice(0, -1).map(along), last] })
  }

  has(index: string): boolean {
    return this.#byIndex.has(index)
  }

  /** An index variable of the member as one number. */
  number(index: string): Expr {
    const { atoms, exprs } = this.#byIndex.get(index) ?? { atoms: [], exprs: [] }
    const [first, ...rest] = exprs
    if (first === undefined) return indexExpr(index)
    const extent = (i: number): Expr => dimExpr(this.#names.atom(atoms[i] ?? 0))
    return rest.reduce((total, expr, i) => call('add', call('mul', total, extent(i + 1)), expr), first)
  }

  /** Positions along the atoms of a tensor dimension at an index that is already rewritten. A computed index is divided by their extents. */
  split(expr: Expr, atoms: readonly number[]): readonly Expr[] {
    if (atoms.length === 1) return [expr]
    for (const [index, position] of this.#byIndex) {
      if (position.atoms.length === atoms.length && equalExprs(this.number(index), expr)) return position.exprs
    }
    return this.#divide(expr, atoms)
  }

  #divide(expr: Expr, atoms: readonly number[]): readonly Expr[] {
    const [last, ...outer] = [...atoms].reverse()
    if (last === undefined || outer.length === 0) return [expr]
    const extent = dimExpr(this.#names.atom(last))
    return [...this.#divide(call('idiv', expr, extent), outer.reverse()), call('mod', expr, extent)]
  }
}
