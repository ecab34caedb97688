/**
 * Structural hashes of expressions: equal for structurally equal expressions, and only for those, and short for expressions of any size.
 * A hash is the digest of a node and of the hashes of its operands, so that it depends on nothing else.
 */
import { createHash } from 'node:crypto'
import type { Expr } from './expr.js'
import { operands, visitUp } from './walk.js'

const keys = new WeakMap<Expr, string>()

/** 132 bits of a digest: collisions are negligible. */
const keyLength = 22

export function hashOf(e: Expr): string {
  const known = keys.get(e)
  if (known !== undefined) return known
  visitUp(e, (node) => {
    if (keys.has(node)) return
    const of = operands(node).map((operand) => keys.get(operand) ?? '')
    const structure = JSON.stringify([node.kind, node.type, labelOf(node), ...of])
    keys.set(node, createHash('sha256').update(structure).digest('base64url').slice(0, keyLength))
  })
  return keys.get(e) ?? ''
}

/** Payload of a node besides its kind, its type and its operands. */
export function labelOf(e: Expr): string {
  switch (e.kind) {
    case 'const':
      return Object.is(e.value, -0) ? '-0' : String(e.value)
    case 'element':
      return e.row
    case 'load':
      return e.tensor
    case 'call':
      return e.form === undefined ? e.fn : `${e.fn} ${e.form}`
    case 'fold':
      return `${e.monoid} ${e.index}`
    default:
      return e.name
  }
}

export const sameExpr = (a: Expr, b: Expr): boolean => a === b || hashOf(a) === hashOf(b)
