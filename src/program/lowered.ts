/**
 * The lowered IR of a project's kernels by name: those of its ops, of the library ops that its graphs run, and of its plans. The `js` device runs
 * it. The front end is loaded on demand; TypeScript is, if the specs have changed since they were last read.
 */
import type { SearchOptions } from '../frontend/searched.js'
import type { PlannedKernel } from '../fuse/planned_kernel.js'
import { kernelName } from '../ir/op_name.js'
import { openMemo } from '../memo.js'

export type LoweredSearch = SearchOptions

/** Kernels by name; those that plans derive take longer, and are derived at the first request. */
export interface Lowered {
  readonly ops: ReadonlyMap<string, PlannedKernel>
  /** Names of the project's own ops among them. */
  readonly own: ReadonlySet<string>
  /** @throws usage errors of plans */
  derived(): ReadonlyMap<string, PlannedKernel>
}

const byName = (kernels: readonly PlannedKernel[]): ReadonlyMap<string, PlannedKernel> =>
  new Map(kernels.map((kernel) => [kernelName(kernel.name), kernel]))

/**
 * @param search shipped ops and graphs to include
 * @throws usage errors of the front end; environment `portable.frontend` in the portable bundle
 */
export async function lowered(root: string, search: LoweredSearch = {}): Promise<Lowered> {
  const [{ readSearched }, { planAll }] = await Promise.all([import('../frontend/searched.js'), import('../search/plans.js')])
  const { kernels, standard, layouts, graphs, plans, locating } = await readSearched(root, 'specs', search)
  // An op of the project overrides one of the library.
  const ops = [...standard, ...kernels]
  let derived: ReadonlyMap<string, PlannedKernel> | undefined
  return {
    ops: byName(ops),
    own: new Set(kernels.map(({ name }) => kernelName(name))),
    derived() {
      if (derived !== undefined) return derived
      const planned = locating(() => planAll(plans, graphs, ops, layouts, undefined, openMemo(root)))
      derived = byName([...planned.kernels, ...planned.templates])
      return derived
    },
  }
}
