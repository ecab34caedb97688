/** Distinct library matmuls of recorded programs, with the steps that use them. */
import type { NativeMatmul } from '../../runtime/native.js'
import { isAligned, matmulName } from '../../runtime/tuned_matmuls.js'
import type { LibraryMatmul } from './measure.js'

/** Distinct matmuls in the order of first use. Matmuls below the alignment that a tuned algorithm may rely on are omitted. */
export function distinctMatmuls(recorded: readonly NativeMatmul[]): LibraryMatmul[] {
  const found = new Map<string, { readonly matmul: NativeMatmul; readonly used: Set<string> }>()
  for (const matmul of recorded) {
    if (!isAligned(matmul) || matmul.extents.includes(0)) continue
    const name = matmulName(matmul)
    const known = found.get(name) ?? { matmul, used: new Set() }
    known.used.add(matmul.label)
    found.set(name, known)
  }
  return [...found.values()].map(({ matmul, used }) => ({ matmul, used: [...used] }))
}
