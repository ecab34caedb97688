/**
 * Name resolution of all verbs: the project's own graphs, plans, programs, ops and layouts first, then shipped ones. The portable bundle,
 * which has no front end, has only shipped ones, and so does a folder without specs and without heddle.
 */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { layouts as shipped } from '../../specs/layouts.js'
import { HeddleError } from '../errors.js'
import type { Ours } from '../frontend/search.js'
import type { Graph } from '../ir/graph.js'
import type { Kernel } from '../ir/kernel.js'
import type { Layout } from '../ir/layout.js'
import type { Conversion } from '../lang/conversion.js'
import type { GraphDecl } from '../lang/graph.js'
import type { PlanDecl } from '../lang/plan.js'
import type { ProgramDecl } from '../lang/program/program.js'
import type { Layouts } from '../runtime/layouts.js'
import { installation } from '../toolchain/index.js'
import { runtimeLayouts } from '../verify/check/layouts.js'

/** Kernels of ops and layouts, by name. */
export interface Read {
  readonly ops: ReadonlyMap<string, Kernel>
  readonly layouts: ReadonlyMap<string, Layout>
}

export interface SearchPath {
  readonly graphs: Readonly<Record<string, GraphDecl>>
  readonly plans: readonly PlanDecl[]
  /** Graphs and plans of the project. */
  readonly ours: Ours
  /** The first of two with the same name is used. */
  readonly programs: readonly ProgramDecl[]
  readonly conversions: readonly Conversion[]
  /** Returns the result of an action; adds locations in specs to its errors. */
  readonly locating: <T>(action: () => T) => T
  /** Layouts as functions. @throws usage `frontend.*` */
  layouts(): Promise<Layouts>
  /** True if the specs have such an op, generated or not. */
  hasOp(name: string): Promise<boolean>
  /** The project's ops, and shipped ops that a graph uses. Undefined if no specs are read. @throws usage `frontend.*` */
  read(graph: Graph): Promise<Read | undefined>
}

/** @throws usage `specs.*`, `frontend.*` for specs that cannot be run, and errors of declared graphs and plans */
export async function searchPath(root: string, specs = 'specs'): Promise<SearchPath> {
  if (installation(root).portable) return shippedAlone()
  const { readSearched, searchDeclarations } = await import('../frontend/searched.js')
  const found = await searchDeclarations(root, specs).catch((error: unknown) => {
    // A folder without specs may lack heddle: names then resolve to shipped ones. Bodies of ops need heddle installed in the folder.
    const isBare = error instanceof HeddleError && error.code === 'frontend.heddle' && !existsSync(resolve(root, specs))
    if (!isBare) throw error
    return { error }
  })
  if ('error' in found) return { ...(await shippedAlone()), read: () => Promise.reject(found.error) }
  const { graphs, plans, ours, programs, conversions, locating } = found
  return {
    ...{ graphs, plans, ours, programs, conversions, locating },
    async layouts() {
      const { layouts } = await readSearched(root, specs, { shipped: true, graphs: false })
      return { ...shipped, ...runtimeLayouts(layouts) }
    },
    async hasOp(name) {
      const { kernels } = await readSearched(root, specs, { shipped: true, graphs: false })
      return kernels.some((kernel) => kernel.name === name)
    },
    async read({ nodes }) {
      const ops = nodes.flatMap((node) => (node.kind === 'op' ? [node.op] : []))
      const { kernels, standard, layouts } = await readSearched(root, specs, { shipped: true, ops, graphs: false })
      return {
        ops: new Map([...kernels, ...standard].map((kernel) => [kernel.name, kernel])),
        layouts: new Map(layouts.map((layout) => [layout.name, layout])),
      }
    },
  }
}

async function shippedAlone(): Promise<SearchPath> {
  const { conversions, graphs, layouts, plans, programs } = await import('../../specs/index.js')
  return {
    ...{ graphs, plans, conversions, ours: { graphs: [], plans: [] } },
    programs: Object.values<ProgramDecl>(programs),
    locating: (action) => action(),
    layouts: async () => layouts,
    hasOp: async () => false,
    read: async () => undefined,
  }
}
