/**
 * A tensor over pairs of a query and a key, such as a bias or a dense mask, that scores read element by element: the loops of attention
 * read neighbouring keys of it together, ahead of the score. Runs when slots are written.
 */
import { local } from '../ir/build.js'
import type { Expr, ExprOf } from '../ir/expr.js'
import { hashOf } from '../ir/expr_hash.js'
import type { AttentionKernel } from '../ir/template.js'
import { freeNames, rewrite, visit } from '../ir/walk.js'
import { classify, offsetOf } from '../schedule/access.js'
import { isInside } from '../schedule/tile_mask.js'
import { type Scope, tensorOf } from './expression.js'

/** The local that stands for what is read for a pair. */
export const pair = 'pair'

/**
 * The first load of the expressions whose neighbouring keys lie side by side, if any. It reads inside of its tensor for every pair there
 * is, as it is read for all pairs of a tile, whatever a mask makes of them.
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

/** An expression that is given what the load reads. */
export const withPair = (expr: Expr, load: ExprOf<'load'>): Expr =>
  rewrite(expr, (node) => (node.kind === 'load' && hashOf(node) === hashOf(load) ? local(pair, load.type) : node))
