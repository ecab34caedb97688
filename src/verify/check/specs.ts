/** A project's specs as kernels: what `gen` writes the text of, and `check` holds against bodies. The front end is loaded when it is asked for. */

import type { SearchOptions } from '../../frontend/index.js'
import type { Linked } from '../../fuse/link.js'
import type { Graph } from '../../ir/graph.js'
import type { Kernel } from '../../ir/kernel.js'
import type { Layout } from '../../ir/layout.js'
import type { PlanDecl } from '../../lang/plan.js'
import { readVerifiedGroups } from './verified_groups.js'

/** What a project declares, and what follows from it. */
export interface SpecKernels extends Linked {
  /** As they are declared. */
  readonly declared: Readonly<Record<string, { readonly graph: Graph }>>
  readonly plans: readonly PlanDecl[]
  /** Kernels of all ops that graphs may use, by the names of the ops. */
  readonly ops: ReadonlyMap<string, Kernel>
  readonly layouts: readonly Layout[]
  /** Names of kernels that plans derive. */
  readonly derived: ReadonlySet<string>
  /** Runs what may refuse a graph or a plan; a refusal names the place where that is written. */
  readonly locating: <T>(action: () => T) => T
  /** A declared graph by the names of kernels. */
  link(graph: Graph): Graph
}

/**
 * The ops of a project with these names and nothing else: several times faster than all of a project. Undefined where a name is of something
 * else, such as a graph.
 */
export async function readNamed(root: string, names: readonly string[], specs = 'specs'): Promise<SpecKernels | undefined> {
  const { readSpecsOrThrow } = await import('../../frontend/index.js')
  const { kernels, layouts } = readSpecsOrThrow({ root, specs: [specs], only: new Set(names) })
  if (!names.every((name) => kernels.some((kernel) => kernel.name === name))) return undefined
  const ops = new Map(kernels.map((kernel) => [kernel.name, kernel]))
  const none = { templates: [], schedules: {}, graphs: {}, declared: {}, plans: [], derived: new Set<string>() }
  return { ...none, kernels, ops, layouts, link: (graph) => graph, locating: (action) => action() }
}

/** Every kernel of a project: those of its ops and those its plans derive. @throws usage errors of the front end and of plans */
export async function readKernels(root: string, specs = 'specs', search: SearchOptions = {}): Promise<SpecKernels> {
  const [{ readSearched }, { planAll }, { linkGraph, linkKernels }] = await Promise.all([
    import('../../frontend/index.js'),
    import('../../fuse/plans.js'),
    import('../../fuse/link.js'),
  ])
  const { kernels, standard, layouts, graphs, plans, locating } = await readSearched(root, specs, search)
  const verified = await readVerifiedGroups(root)
  const planned = locating(() => planAll(plans, graphs, [...kernels, ...standard], layouts, verified))
  // A project that cannot be written to is checked anew each time.
  await verified.save().catch(() => undefined)
  const ops = new Map([...kernels, ...standard].map((kernel) => [kernel.name, kernel]))
  const derived = new Set([...planned.kernels, ...planned.templates].map(({ name }) => name))
  const linked = locating(() => linkKernels(planned, kernels, standard, graphs))
  return { ...linked, declared: graphs, plans, ops, layouts, derived, link: linkGraph, locating }
}
