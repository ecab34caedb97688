/** The matmuls of a library in recorded programs: each kind once, with the steps that are of it. */
import type { NativeMatmul } from '../../runtime/native.js'
import { isAligned, matmulName } from '../../runtime/tuned_matmuls.js'
import type { LibraryMatmul } from './measure.js'

/** In the order in which they were first met. What lies off the alignment that a kept algorithm may rely on is left out: nothing is kept for it. */
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
