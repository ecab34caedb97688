/** Names inside a fused kernel: unique, and taken from the members where they can be. */
import { freshName } from '../../ir/names.js'
import type { Space } from './space.js'

export interface Names {
  /** `base`, or `base` with the first number that makes it unique. */
  readonly fresh: (base: string) => string
  /** The dimension name of an atom. */
  readonly atom: (atom: number) => string
  /** The row index that runs over an atom. */
  readonly rowIndex: (atom: number) => string
}

/** Atoms of the space are named first, so that they keep the names their ops gave them. */
export function createNames(space: Space): Names {
  const taken = new Set<string>()
  const atoms = new Map<number, string>()
  const fresh = (base: string): string => freshName(base, taken)
  const atom = (id: number): string => {
    const name = atoms.get(id) ?? fresh(space.axes.label(id))
    atoms.set(id, name)
    return name
  }
  for (const id of [...space.rows, space.inner]) atom(id)
  return { fresh, atom, rowIndex: (id) => `i_${atom(id)}` }
}
