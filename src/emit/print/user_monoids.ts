/** User monoids and recurrences of a kernel, and the names of their structs in its source. */
import type { Kernel } from '../../ir/kernel.js'
import { ownKey } from '../../ir/own_key.js'
import type { UserMonoid } from '../../ir/user_monoid.js'
import type { UserRecurrence } from '../../ir/user_recurrence.js'

/** A monoid or recurrence that is emitted as a struct beside the kernels. */
export type Own = UserMonoid | UserRecurrence

export const isFold = (own: Own): own is UserRecurrence => 'next' in own

/** Monoids and recurrences of a kernel, each once, by key, in order. */
function byKey({ body }: Pick<Kernel, 'body'>): ReadonlyMap<string, Own> {
  const found = new Map<string, Own>()
  for (const s of body) {
    const own = s.kind === 'merge' || s.kind === 'mergeScan' ? s.monoid : s.kind === 'foldRow' ? s.fold : undefined
    if (own === undefined) continue
    const key = ownKey(own)
    if (!found.has(key)) found.set(key, own)
  }
  return found
}

/** Monoids and recurrences of a kernel, each once, in order. */
export const ownsOf = (kernel: Pick<Kernel, 'body'>): readonly Own[] => [...byKey(kernel).values()]

/** Device headers that their structs need. */
export const userMonoidHeaders = (kernel: Pick<Kernel, 'body'>): readonly string[] =>
  ownsOf(kernel).map((own) => (isFold(own) ? 'fold.cuh' : own.shift === undefined ? 'fields.cuh' : 'shifted.cuh'))

/** For programs inside main loops, which have none. */
export const noOwn = (): never => {
  throw new Error('internal: a main loop has no user monoids')
}

/** The name of a struct. */
export function userMonoidName(own: Own, kernel: Pick<Kernel, 'name' | 'body'>): string {
  const at = [...byKey(kernel).keys()].indexOf(ownKey(own))
  if (at < 0) throw new Error(`internal: ${kernel.name} declares no such monoid`)
  return `Own${at}`
}
