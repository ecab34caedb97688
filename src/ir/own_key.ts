/**
 * Keys of monoids and recurrences that authors declare. A declaration is read anew at each use, with names of its own; uses of one declaration have
 * equal keys, so that they share a struct in the source and the memory that goes with it.
 */
import { index } from './build.js'
import type { Expr } from './expr.js'
import { hashOf } from './expr_hash.js'
import type { UserMonoid } from './user_monoid.js'
import type { UserRecurrence } from './user_recurrence.js'
import { substitute } from './walk.js'

/** Equal for declarations that compute the same, whatever the names of their fields and parameters are. */
export function ownKey(own: UserMonoid | UserRecurrence): string {
  const isFold = 'next' in own
  const [names, made] = isFold ? [[...own.before, ...own.element], own.next] : [[...own.left, ...own.right], own.combine]
  const places = new Map(names.map((name, i): [string, Expr] => [name, index(`(${i})`)]))
  const fields = own.fields.map((field) => [
    field.type,
    'identity' in field ? `${Object.is(field.identity, -0) ? '-0' : field.identity}` : '',
  ])
  const more = isFold ? own.taken : own.shift === undefined ? [] : ['shift']
  return JSON.stringify([isFold, fields, more, made.map((expr) => hashOf(substitute(expr, places)))])
}
