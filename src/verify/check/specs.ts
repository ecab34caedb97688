/** A project's specs as kernels: what `gen` writes the text of, and `check` holds against bodies. The front end is loaded when it is asked for. */

import { HeddleError } from '../../errors.js'
import type { SearchOptions } from '../../frontend/searched.js'
import type { Linked } from '../../fuse/link.js'
import type { Graph } from '../../ir/graph.js'
import type { Kernel } from '../../ir/kernel.js'
import type { Layout } from '../../ir/layout.js'
import type { PlanDecl } from '../../lang/plan.js'
import { openMemo } from '../../memo.js'
import { type AheadProgram, compileAhead } from '../../program/ahead.js'
import { readVerifiedGroups } from './verified_groups.js'

/** What a project declares, and what follows from it. */
export interface SpecKernels extends Linked {
  /** As they are declared. */
  readonly declared: Readonly<Record<string, { readonly graph: Graph }>>
  readonly plans: readonly PlanDecl[]
  /** The same with the groups that were found for those that leave them to a search. */
  readonly resolved: readonly PlanDecl[]
  /** Kernels of all ops that graphs may use, by the names of the ops. */
  readonly ops: ReadonlyMap<string, Kernel>
  readonly layouts: readonly Layout[]
  /** Names of kernels that plans derive. */
  readonly derived: ReadonlySet<string>
  /** Runs what may refuse a graph or a plan; a refusal names the place where that is written. */
  readonly locating: <T>(action: () => T) => T
  /** Programs in their usual configuration, under each plan that is for them. */
  readonly programs: readonly AheadProgram[]
  /** Programs that one of several plans cannot hold, and why. */
  readonly refused: readonly HeddleError[]
  /** A declared graph by the names of kernels. */
  link(graph: Graph): Graph
}

/**
 * The ops of a project with these names and nothing else: several times faster than all of a project. Undefined where a name is of something
 * else, such as a graph.
 */
export async function readNamed(root: string, names: readonly string[], specs = 'specs'): Promise<SpecKernels | undefined> {
  const { readDeclared } = await import('../../frontend/searched.js')
  const { kernels, layouts } = await readDeclared(root, specs, new Set(names))
  if (!names.every((name) => kernels.some((kernel) => kernel.name === name))) return undefined
  const ops = new Map(kernels.map((kernel) => [kernel.name, kernel]))
  const none = {
    templates: [],
    left: [],
    schedules: {},
    graphs: {},
    declared: {},
    plans: [],
    resolved: [],
    derived: new Set<string>(),
    programs: [],
    refused: [],
  }
  return { ...none, kernels, ops, layouts, link: (graph) => graph, locating: (action) => action() }
}

/** Every kernel of a project: those of its ops and those its plans derive. @throws usage errors of the front end and of plans */
export async function readKernels(root: string, specs = 'specs', search: SearchOptions = {}): Promise<SpecKernels> {
  const [{ readSearched }, { planAll }, { linkGraph, linkKernels }] = await Promise.all([
    import('../../frontend/searched.js'),
    import('../../fuse/plans.js'),
    import('../../fuse/link.js'),
  ])
  const { kernels, standard, layouts, graphs, plans, programs, conversions, locating } = await readSearched(root, specs, search)
  const verified = await readVerifiedGroups(root)
  const planned = locating(() => planAll(plans, graphs, [...kernels, ...standard], layouts, verified, openMemo(root)))
  // A project that cannot be written to is checked anew each time.
  await verified.save().catch(() => undefined)
  const ops = new Map([...kernels, ...standard].map((kernel) => [kernel.name, kernel]))
  const derived = new Set([...planned.kernels, ...planned.templates].map(({ name }) => name))
  const ahead = locating(() => compileAhead(programs, planned.graphs, conversions))
  const between = Object.fromEntries(ahead.graphs.map((graph, i) => [`${graph.name} ${i}`, { graph }]))
  const linked = locating(() => linkKernels(planned, kernels, standard, { ...graphs, ...between }))
  return {
    ...linked,
    programs: ahead.programs,
    left: planned.left.map((error) => placed(error, locating)),
    refused: ahead.refused.map((error) => placed(error, locating)),
    declared: graphs,
    plans,
    resolved: planned.plans,
    ops,
    layouts,
    derived,
    link: linkGraph,
    locating,
  }
}

/** An error with the place of what it is about, without being thrown. */
function placed(error: HeddleError, locating: SpecKernels['locating']): HeddleError {
  try {
    return locating(() => {
      throw error
    })
  } catch (located) {
    return located instanceof HeddleError ? located : error
  }
}
