/** Expressions of the loop IR: values that a node computes, and places that it reads or writes. */
import { index as indexVar } from '../ir/build.js'
import type { Expr } from '../ir/expr.js'
import { passStatementOf, rowStatementOf } from '../schedule/constructs/index.js'
import type { Loop } from './ir.js'

const some = (...exprs: readonly (Expr | undefined)[]): readonly Expr[] => exprs.filter((e) => e !== undefined)

/** Values that a node computes, without those of the nodes in its body. */
export function valuesOf(loop: Loop): readonly Expr[] {
  switch (loop.kind) {
    case 'let':
    case 'fill':
    case 'put':
    case 'store':
    case 'groups':
      return [loop.value]
    case 'compute':
      return 'kind' in loop.value ? [loop.value] : []
    case 'accumulate':
      return loop.values
    case 'accumulator':
      return loop.starts
    case 'search':
      return loop.part === 'element' ? passStatementOf(loop.stmt).values(loop.stmt) : []
    case 'call':
      return rowStatementOf(loop.stmt).values(loop.stmt)
    default:
      return []
  }
}

/** Indices, lengths and conditions of a node. */
export function placesOf(loop: Loop): readonly Expr[] {
  switch (loop.kind) {
    case 'offset':
      return [loop.value]
    case 'copy':
      return [...loop.access.indices, ...(loop.members ?? []).flatMap(({ indices }) => indices), loop.length, ...some(loop.guard)]
    case 'request':
    case 'held':
      return [loop.length]
    case 'groups':
      return [loop.columns, loop.length]
    case 'count':
      return [indexVar(loop.index), ...loop.divisors]
    case 'prefetch':
      return placesOf(loop.copy)
    case 'storeChunk':
      return [...loop.access.indices, ...(loop.members ?? []).flatMap(({ indices }) => indices), ...some(loop.when)]
    case 'store':
      return [...loop.indices, ...some(loop.when)]
    case 'fill':
      return some(loop.when)
    case 'search':
      return loop.part === 'declare' ? passStatementOf(loop.stmt).places(loop.stmt) : []
    case 'call':
      return rowStatementOf(loop.stmt).places(loop.stmt)
    case 'work':
      return loop.digits.flatMap((digit) => ('length' in digit ? [digit.length] : []))
    case 'piece':
      return loop.bounds
    case 'narrow':
      return loop.interval.bounds.flatMap((bound) => (bound.kind === 'if' ? [bound.part] : bound.place.map(({ value }) => value)))
    case 'fillTile':
      return loop.load.indices
    case 'for':
      return lengthsOf(loop)
    case 'version':
      return some(...loop.lengths, ...loop.stated)
    default:
      return []
  }
}

/** Lengths and the condition of a loop. */
function lengthsOf(loop: Extract<Loop, { readonly kind: 'for' }>): readonly Expr[] {
  switch (loop.owner) {
    case 'vector':
      return []
    case 'lane':
      return [loop.length]
    case 'block':
      return [loop.rows.length, loop.columns.length]
    default:
      return [...loop.loops.map(({ length }) => length), ...some(loop.when)]
  }
}
