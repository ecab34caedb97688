/**
 * Inlines the intermediate values of a row program. Before elements or a softmax are recognised in a body, scalars and elements of rows are replaced
 * by the expressions that define them.
 */
import type { Expr } from '../../ir/expr.js'
import type { StmtOf } from '../../ir/kernel.js'
import { rewrite, substitute } from '../../ir/walk.js'

export class Inliner {
  readonly #rows = new Map<string, { readonly index: string; readonly value: Expr }>()
  readonly #scalars = new Map<string, Expr>()

  /** Defines a name for later expressions. */
  define(name: string, value: Expr): void {
    this.#scalars.set(name, value)
  }

  defineRow({ name, index, value }: StmtOf<'row'>): void {
    this.#rows.set(name, { index, value: this.inline(value) })
  }

  /** An expression of the body with all names defined so far inlined. */
  inline(expr: Expr): Expr {
    return rewrite(substitute(expr, this.#scalars), (node) => {
      if (node.kind !== 'element') return node
      const row = this.#rows.get(node.row)
      return row === undefined ? node : substitute(row.value, new Map([[row.index, node.index]]))
    })
  }
}
