/** The monoids that a kernel's author declared, and the names of their structs in its text. */
import type { Kernel } from '../ir/kernel.js'
import type { OwnMonoid } from '../ir/own_monoid.js'

/** The monoids a kernel declares, each once, in order. */
export const ownMonoids = ({ body }: Pick<Kernel, 'body'>): readonly OwnMonoid[] => [
  ...new Set(body.flatMap((s) => (s.kind === 'merge' || s.kind === 'mergeScan' ? [s.monoid] : []))),
]

/** For programs inside of main loops, which have no such monoids. */
export const noMonoid = (): never => {
  throw new Error('internal: a main loop combines by no monoid of an author')
}

/** The name of a monoid's struct. */
export function ownName(monoid: OwnMonoid, kernel: Pick<Kernel, 'name' | 'body'>): string {
  const at = ownMonoids(kernel).indexOf(monoid)
  if (at < 0) throw new Error(`internal: ${kernel.name} declares no such monoid`)
  return `Own${at}`
}
