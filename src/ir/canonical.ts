/**
 * Equality of expressions up to a canonical form: operands of commutative operations in any order, comparisons in either direction,
 * differences as sums with a negative. No rearrangement changes a float's bits: only the order of two operands varies.
 */
import { call } from './build.js'
import type { Expr } from './expr.js'
import { labelOf } from './expr_hash.js'
import type { IntrinsicName } from './intrinsics.js'
import { operands } from './walk.js'

const commutative: ReadonlySet<IntrinsicName> = new Set([
  'add',
  'mul',
  'maximum',
  'minimum',
  'and',
  'or',
  'eq',
  'ne',
  'bitAnd',
  'bitOr',
  'bitXor',
  'wrappingAdd',
  'wrappingMul',
])
const mirrored: Partial<Record<IntrinsicName, IntrinsicName>> = { gt: 'lt', ge: 'le' }

/** Numbers expressions by their form: numbers are equal if and only if forms are. Shared subexpressions are visited once. */
function numberForms(): (expr: Expr) => number {
  const numbers = new Map<string, number>()
  const done = new Map<Expr, number>()
  const go = (node: Expr): number => {
    const known = done.get(node)
    if (known !== undefined) return known
    const [a, b] = operands(node)
    const plain = node.kind === 'call' && node.fn === 'sub' && a && b ? call('add', a, call('neg', b)) : node
    const parts = operands(plain).map(go)
    if (plain.kind === 'call' && mirrored[plain.fn] !== undefined) parts.reverse()
    if (plain.kind === 'call' && commutative.has(plain.fn)) parts.sort((one, other) => one - other)
    const label = plain.kind === 'call' ? (mirrored[plain.fn] ?? labelOf(plain)) : labelOf(plain)
    const text = `${plain.kind} ${plain.type} ${label}(${parts.join(' ')})`
    const number = numbers.get(text) ?? numbers.size
    numbers.set(text, number)
    done.set(node, number)
    return number
  }
  return go
}

/** True if two expressions have the same canonical form. */
export function isSameForm(a: Expr, b: Expr): boolean {
  if (a === b) return true
  const numberOf = numberForms()
  return numberOf(a) === numberOf(b)
}
