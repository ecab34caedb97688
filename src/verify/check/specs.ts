/** A project's specs as kernels, which `gen` writes and `check` compares with bodies. The front end is loaded on demand. */

import { HeddleError } from '../../errors.js'
import type { SearchOptions } from '../../frontend/searched.js'
import type { Graph } from '../../ir/graph.js'
import type { Kernel } from '../../ir/kernel.js'
import type { Layout } from '../../ir/layout.js'
import type { PlanDecl } from '../../lang/plan.js'
import { openMemo } from '../../memo.js'
import { type AheadProgram, compileAhead } from '../../program/ahead.js'
import type { Linked } from '../../search/link.js'
import { readVerifiedGroups } from './verified_groups.js'

/** Declarations of a project, and the kernels derived from them. */
export interface SpecKernels extends Linked {
  /** The declared graphs. */
  readonly declared: Readonly<Record<string, { readonly graph: Graph }>>
  readonly plans: readonly PlanDecl[]
  /** The plans, with the groups that a search found for those that request one. */
  readonly resolved: readonly PlanDecl[]
  /** Kernels of all ops that graphs may use, by op name. */
  readonly ops: ReadonlyMap<string, Kernel>
  readonly layouts: readonly Layout[]
  /** Names of kernels that plans derive. */
  readonly derived: ReadonlySet<string>
  /** Runs an action that may refuse a graph or a plan; adds the location of the declaration to the refusal. */
  readonly locating: <T>(action: () => T) => T
  /** Programs in their default configuration, under each of their plans. */
  readonly programs: readonly AheadProgram[]
  /** Errors of programs that one of several plans does not support. */
  readonly refused: readonly HeddleError[]
  /** Links a declared graph to kernels by name. */
  link(graph: Graph): Graph
}

/**
 * Only the ops of a project with these names: several times faster than reading the whole project. Undefined if a name is not that of an op,
 * but of a graph, for example.
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
    import('../../search/plans.js'),
    import('../../search/link.js'),
  ])
  const { kernels, standard, layouts, graphs, plans, programs, conversions, locating } = await readSearched(root, specs, search)
  const verified = await readVerifiedGroups(root)
  const planned = locating(() => planAll(plans, graphs, [...kernels, ...standard], layouts, verified, openMemo(root)))
  // A read-only project is verified again each time.
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

/** An error with the location of its subject, without throwing it. */
function placed(error: HeddleError, locating: SpecKernels['locating']): HeddleError {
  try {
    return locating(() => {
      throw error
    })
  } catch (located) {
    return located instanceof HeddleError ? located : error
  }
}
