/**
 * A tensor over pairs of a query and a key, such as a bias or a dense mask, that scores read element by element. The loops of attention prefetch it
 * for neighbouring keys together, before the score. Runs when slots are emitted.
 */
import { local } from '../../ir/build.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import { hashOf } from '../../ir/expr_hash.js'
import type { AttentionKernel } from '../../ir/template.js'
import { freeNames, rewrite, visit } from '../../ir/walk.js'
import { classify, offsetOf } from '../../schedule/access/access.js'
import { isInside } from '../../schedule/block_mask.js'
import { type Scope, tensorOf } from '../print/expression.js'

/** Local that stands for the loaded value of a pair. */
export const pair = 'pair'

/**
 * First load of the expressions that is contiguous over keys, if any. Its indices must be inside the tensor for every pair, since it is loaded for
 * all pairs of a tile, whatever the mask.
 */
export function pairLoad(exprs: readonly Expr[], kernel: AttentionKernel, scope: Scope): ExprOf<'load'> | undefined {
  let found: ExprOf<'load'> | undefined
  for (const expr of exprs) {
    visit(expr, (node) => {
      if (found === undefined && node.kind === 'load' && isChunked(node, kernel, scope)) found = node
    })
  }
  return found
}

function isChunked(load: ExprOf<'load'>, kernel: AttentionKernel, scope: Scope): boolean {
  const names = freeNames(load)
  if (load.type === 'bool' || !names.has('i') || !names.has('j') || !isInside(load, kernel)) return false
  const found = classify(offsetOf(tensorOf(load.tensor, scope), load.indices, scope.fixed), 'j')
  return found.kind === 'contiguous' && found.run === Number.POSITIVE_INFINITY
}

/** The expression with the load replaced by a parameter. */
export const withPair = (expr: Expr, load: ExprOf<'load'>): Expr =>
  rewrite(expr, (node) => (node.kind === 'load' && hashOf(node) === hashOf(load) ? local(pair, load.type) : node))
