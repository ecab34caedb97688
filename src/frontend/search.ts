/**
 * The search path of declarations: the project's ops, layouts, graphs and plans, then the package's. A graph of the
 * project may use shipped ops; a shipped plan is available under its name unless the project has one for the same graph. Names of the
 * project win, and the names that they hide are reported.
 */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { HeddleError, together, usageError } from '../errors.js'
import { getOwn } from '../ir/get_own.js'
import type { Kernel } from '../ir/kernel.js'
import type { Layout } from '../ir/layout.js'
import { structuralHash } from '../ir/structural_hash.js'
import type { Conversion } from '../lang/conversion.js'
import type { GraphDecl } from '../lang/graph.js'
import type { PlanDecl } from '../lang/plan.js'
import type { ProgramDecl } from '../lang/program/program.js'
import { openMemo } from '../memo.js'
import type { Declared } from './cache/declared.js'
import { knownSpecs, type Settings, settingsOf } from './cache/known.js'
import { isPackage, knownShipped, textsBelow } from './cache/shipped.js'
import type { SpecProject } from './project/project.js'
import type { Shipped } from './read/read.js'
import { type Declarations, readDeclarations } from './run/declarations.js'

export interface SearchedSpecs extends Declarations {
  /** Kernels of the project's ops. */
  readonly kernels: readonly Kernel[]
  /** Further kernels: of the standard library, and of shipped ops that a graph uses. */
  readonly standard: readonly Kernel[]
  readonly layouts: readonly Layout[]
  /** Shipped graphs and plans (`plan for graph`) whose names the project uses for something else. */
  readonly hidden: readonly string[]
}

export interface SearchOptions {
  /** True to include the shipped graphs and plans, in addition to the shipped ops that the project's graphs use. */
  readonly shipped?: boolean
  /** Shipped ops to include even if no graph uses them. */
  readonly ops?: readonly string[]
  /** False leaves out the shipped graphs and the ops they use; a set of names leaves out all other shipped graphs and their ops. */
  readonly graphs?: boolean | ReadonlySet<string>
}

/**
 * Reads the specs of a project and, as far as needed, of the package.
 * @throws usage `frontend.*` for spec modules with errors, `specs.*` for errors of declaring graphs and plans, `specs.shadow` if a
 * graph uses a shipped op and the project has another op of that name
 */
export async function readSearched(
  root: string,
  specs = 'specs',
  { shipped = false, ops = [], graphs = true }: SearchOptions = {},
): Promise<SearchedSpecs> {
  const [found, declared] = await allOf([() => readOwn(root, specs, shipped), () => readDeclarations(root, specs)])
  const folder = shippedFolder(found.settings.library, root)
  if (folder === undefined) {
    return { ...found.read, ...declared, graphs: withApplied(declared, declared.applied), hidden: [] }
  }
  const among = typeof graphs === 'boolean' ? undefined : graphs
  return withShipped({ root, folder, own: found }, found.read, declared, { shipped: shipped && graphs !== false, ops, among })
}

/** Declarations of the project, and the settings and project they were read with. */
interface OwnSpecs {
  readonly read: Declared
  readonly settings: Settings
  readonly project: () => Promise<SpecProject>
}

/** The project's specs. TypeScript is loaded only if they have changed. */
async function readOwn(root: string, specs: string, shipped: boolean): Promise<OwnSpecs> {
  const known = knownSpecs(root, specs)
  const open = async (): Promise<SpecProject> => (await import('./project/project.js')).openProject(root)
  if (known !== undefined) return { read: known, settings: known.settings, project: open }
  const [{ configsOf, packageOf }, { readProjectOrThrow }, { reopened }] = await Promise.all([
    import('./project/project.js'),
    import('./read/read.js'),
    import('./project/reopened.js'),
  ])
  const project = reopened(root, specs)
  const library = packageOf(project)
  const settings = settingsOf(project.root, configsOf(project), library)
  // A project without specs has the shipped ones, if these are requested.
  const folder = shipped && !existsSync(resolve(root, specs)) ? shippedFolder(library, root) : undefined
  const readAlone = (): Declared => readProjectOrThrow(project, [], nothing)
  const read = folder === undefined ? readProjectOrThrow(project, [specs]) : (standardAlone(folder) ?? readAlone())
  return { read, settings, project: async () => project }
}

/** Runs two actions concurrently and returns both results. @throws one error that combines theirs */
async function allOf<A, B>([first, second]: readonly [() => Promise<A>, () => Promise<B>]): Promise<readonly [A, B]> {
  const settled = await Promise.allSettled([first(), second()])
  const reasons = settled.flatMap((each): unknown[] => (each.status === 'rejected' ? [each.reason] : []))
  const [a, b] = settled
  if (a.status === 'fulfilled' && b.status === 'fulfilled') return [a.value, b.value]
  const other = reasons.find((reason) => !(reason instanceof HeddleError))
  throw other ?? together(reasons.filter((reason) => reason instanceof HeddleError))
}

/** The project's graphs: those it exports, and those its programs apply. */
const withApplied = ({ graphs }: Declarations, applied: readonly GraphDecl[]): Declarations['graphs'] => ({
  ...graphs,
  ...Object.fromEntries(applied.map((decl) => [decl.name, decl])),
})

/** The same with the shipped graphs that plans of the project are for. */
function withPlanned({ graphs, plans }: Declarations, module: ShippedModule): Declarations['graphs'] {
  const planned = new Set(plans.map(({ graph }) => graph))
  return { ...Object.fromEntries(Object.entries(module.graphs).filter(([name]) => planned.has(name))), ...graphs }
}

/** A module that declares nothing: reading it yields the standard library alone. */
const nothing = { 'specs/nothing.ts': 'export {}\n' }

/** The same without reading it; undefined if it is not known. */
function standardAlone(folder: string): Declared | undefined {
  const packed = knownShipped(folder)
  return packed === undefined ? undefined : { kernels: [], standard: packed.standard.map(({ kernel }) => kernel), layouts: [] }
}

interface ShippedModule {
  readonly ops: Readonly<Record<string, unknown>>
  readonly graphs: Readonly<Record<string, GraphDecl>>
  readonly plans: readonly PlanDecl[]
  readonly programs: Readonly<Record<string, ProgramDecl>>
  readonly conversions: readonly Conversion[]
}

/** Exports of the package's `specs/index.js`. */
const shippedModule = async (folder: string): Promise<ShippedModule> =>
  (await import(pathToFileURL(join(folder, 'dist', 'specs', 'index.js')).href)) as ShippedModule

/** The shipped module restricted to some graphs. */
const partOf = (module: ShippedModule, among: ReadonlySet<string>): ShippedModule => ({
  ...module,
  graphs: Object.fromEntries(Object.entries(module.graphs).filter(([name]) => among.has(name))),
  plans: module.plans.filter(({ graph }) => among.has(graph)),
})

/** The project's graphs and plans, followed by the shipped ones. */
function merge(declared: Declarations, module: ShippedModule): Pick<SearchedSpecs, 'graphs' | 'plans' | 'hidden'> {
  const key = ({ name, graph }: PlanDecl): string => `${name} for ${graph}`
  const ours = new Set(declared.plans.map(key))
  const plans = module.plans.filter((plan) => !ours.has(key(plan)) && !isOther(declared, module, plan.graph))
  const others = Object.keys(module.graphs).filter((name) => isOther(declared, module, name))
  return {
    graphs: { ...module.graphs, ...declared.graphs },
    plans: [...declared.plans, ...plans],
    hidden: [...others, ...module.plans.map(key).filter((name) => ours.has(name))],
  }
}

/** Names of the graphs that a project declares, and its plans. */
export interface Ours {
  readonly graphs: readonly string[]
  readonly plans: readonly PlanDecl[]
}

/** Graphs, plans, programs and conversions of the search path, without the ops; `ours` are the project's. @throws usage `specs.*` */
export async function searchDeclarations(
  root: string,
  specs = 'specs',
): Promise<Declarations & Pick<SearchedSpecs, 'hidden'> & { readonly ours: Ours }> {
  const [library, declared] = await Promise.all([libraryOf(root, specs), readDeclarations(root, specs)])
  const folder = shippedFolder(library, root)
  const ours = { graphs: Object.keys(declared.graphs), plans: declared.plans }
  if (folder === undefined) return { ...declared, graphs: withApplied(declared, declared.applied), hidden: [], ours }
  const module = await shippedModule(folder)
  const names = new Set(declared.programs.map(({ name }) => name))
  return {
    ...declared,
    ...merge({ ...declared, graphs: withApplied(declared, declared.applied) }, module),
    programs: [...declared.programs, ...Object.values(module.programs).filter(({ name }) => !names.has(name))],
    conversions: [...declared.conversions, ...module.conversions],
    ours,
  }
}

/** The folder of the package that `heddle` resolves to in a project. @throws usage `frontend.heddle` */
async function libraryOf(root: string, specs: string): Promise<string | undefined> {
  const known = knownSpecs(root, specs)
  if (known !== undefined) return known.settings.library
  const { openProject, packageOf } = await import('./project/project.js')
  return packageOf(openProject(root))
}

/** The package's folder; undefined if the project is the package. */
const shippedFolder = (library: string | undefined, root: string): string | undefined =>
  library === undefined || isPackage(resolve(root), library) ? undefined : library

interface SearchPlace {
  readonly root: string
  /** Folder of the package. */
  readonly folder: string
  readonly own: OwnSpecs
}

async function withShipped(
  place: SearchPlace,
  read: Declared,
  declared: Declarations,
  {
    shipped: withPlans,
    ops,
    among,
  }: Required<Pick<SearchOptions, 'shipped' | 'ops'>> & { readonly among: ReadonlySet<string> | undefined },
): Promise<SearchedSpecs> {
  // Building the shipped graphs takes longer than all of a project that uses none.
  if (!withPlans && ops.length === 0 && isBare(declared)) return { ...read, ...declared, hidden: [] }
  const all = await shippedModule(place.folder)
  const module = among === undefined ? all : partOf(all, among)
  declared.locating(() => refuseShadowed(read, declared, module))
  const isShipped = (decl: GraphDecl): boolean => getOwn(all.graphs, decl.name) === decl
  const ours = {
    ...declared,
    graphs: withApplied(
      declared,
      declared.applied.filter((decl) => !isShipped(decl)),
    ),
  }
  const found = withPlans ? merge(ours, module) : { graphs: withPlanned(ours, module), plans: ours.plans, hidden: [] }
  const known = new Set([...read.kernels, ...read.standard].map(({ name }) => name))
  const nodes = [...Object.values(found.graphs), ...declared.applied].flatMap(({ graph }) => graph.nodes)
  const used = nodes.flatMap((node) => (node.kind === 'op' && !known.has(node.op) ? [node.op] : []))
  const needed = new Set([...used, ...ops].filter((name) => Object.hasOwn(module.ops, name)))
  // Plans may store edges in shipped layouts.
  const isWanted = needed.size > 0 || found.plans.length > 0
  const shipped = isWanted ? await shippedSpecs(place, needed) : { kernels: [], layouts: [] }
  const layouts = new Set(read.layouts.map(({ name }) => name))
  const { programs, applied, conversions, locating } = declared
  return {
    ...found,
    programs,
    applied,
    conversions,
    locating,
    kernels: read.kernels,
    standard: [...read.standard, ...shipped.kernels],
    layouts: [...read.layouts, ...shipped.layouts.filter(({ name }) => !layouts.has(name))],
  }
}

/** True if a project has only ops and layouts, which use nothing that is shipped. */
const isBare = ({ graphs, plans, programs, applied }: Declarations): boolean =>
  [...Object.values(graphs), ...plans, ...programs, ...applied].length === 0

/** The named shipped ops, and all shipped layouts. If they are not known, they are read and cached by a project's settings and the package's specs. */
async function shippedSpecs({ root, folder, own }: SearchPlace, names: ReadonlySet<string>): Promise<Shipped> {
  const packed = knownShipped(folder)
  if (packed !== undefined) return { kernels: packed.kernels.filter(({ name }) => names.has(name)), layouts: packed.layouts }
  const follows = [structuralHash(own.settings), structuralHash(textsBelow(join(folder, 'specs'))), ...[...names].sort()]
  const slot = openMemo(root).slot<Shipped>('shipped', follows)
  const known = slot.read()
  if (known !== undefined) return known
  const { readShipped } = await import('./read/read.js')
  const read = readShipped(await own.project(), folder, names)
  slot.write(read)
  return read
}

/** True if the project has another graph under the name of a shipped one: the groups of shipped plans do not apply to it. */
const isOther = (declared: Declarations, module: ShippedModule, graph: string): boolean =>
  Object.hasOwn(declared.graphs, graph) && declared.graphs[graph] !== module.graphs[graph]

/** Refuses a shipped op that the project shadows: a name denotes one op in generated source, so a graph cannot use the shipped one. */
function refuseShadowed(read: Declared, { graphs, applied }: Declarations, { ops }: ShippedModule): void {
  const names = new Set(read.kernels.map(({ name }) => name))
  for (const { name, ops: used = {} } of [...Object.values(graphs), ...applied]) {
    const shadowed = Object.entries(used).find(([op, declaration]) => names.has(op) && ops[op] === declaration)
    if (shadowed === undefined) continue
    throw usageError('specs.shadow', `graph ${name} uses the shipped op ${shadowed[0]}, and the project has an op of that name`, {
      hint: 'rename the op of the project, or use it in the graph',
    })
  }
}
