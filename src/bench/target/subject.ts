/**
 * Subjects of `heddle bench NAME`: a graph or a program under plans, or one kernel, which is a graph of one node. Includes the arithmetic of
 * the subject, independent of plans, for the floor.
 */
import type { KernelEntry, Manifest } from '../../emit/manifest/manifest.js'
import { HeddleError, usageError } from '../../errors.js'
import type { DType } from '../../ir/dtype.js'
import { type Graph, type GraphValue, isQuantised, type NodeOf } from '../../ir/graph.js'
import type { Program } from '../../ir/program.js'
import { evaluateExtent } from '../../ir/shape.js'
import type { Conversion } from '../../lang/conversion.js'
import { type CompiledProgram, compileProgram, findPlan, planNames } from '../../program/index.js'
import { inlineProgram } from '../../program/inline.js'

type Dims = Readonly<Record<string, number>>

/** One implementation of the subject. */
export interface Form {
  /** Name of the plan; for a kernel, its key. */
  readonly plan: string
  readonly graph: Graph
}

/** A program under a plan, and the program inlined into one graph. */
export interface ProgramForm {
  readonly plan: string
  readonly compiled: CompiledProgram
  readonly inlined: Graph
}

export interface Subject {
  readonly kind: 'graph' | 'kernel' | 'program'
  readonly name: string
  readonly forms: readonly (Form | ProgramForm)[]
  /** Multiplications and additions of its matmuls; undefined if its signature does not determine them. */
  readonly flops: (dims: Dims) => number | undefined
  readonly typical: Dims
}

/** Plan that leaves a graph as declared. */
export const unfused = 'unfused'

/**
 * A graph under the named plans; by default under no plan and under all that cover it with the same results.
 * @throws usage `plan.unknown` for a plan that does not cover it
 */
export function graphSubject(declared: Graph, manifest: Manifest, plans: readonly string[] | undefined): Subject {
  const covering = Object.entries(manifest.plans ?? {}).flatMap(([plan, graphs]): Form[] => {
    const graph = Object.hasOwn(graphs, declared.name) ? graphs[declared.name] : undefined
    return graph === undefined ? [] : [{ plan, graph }]
  })
  const all = [{ plan: unfused, graph: declared }, ...covering]
  const names = plans ?? all.filter(({ graph }) => graph.int8 === undefined).map(({ plan }) => plan)
  const forms = names.map((name) => {
    const found = all.find(({ plan }) => plan === name)
    if (found !== undefined) return found
    throw usageError('plan.unknown', `no plan ${name} covers ${declared.name}`, {
      hint: `plans of it: ${all.map(({ plan }) => plan).join(', ')}`,
    })
  })
  return {
    kind: 'graph',
    name: declared.name,
    forms,
    flops: (dims) => graphFlops(declared, dims),
    typical: declared.typical ?? {},
  }
}

/**
 * A program under the named plans; by default under no plan and under all that apply to it with the same results.
 * @throws usage `plan.unknown` for a plan that does not apply to it, `bench.plans` for an int8 plan, `plan.*` for one that cannot be applied
 */
export function programSubject(
  program: Program,
  manifest: Manifest,
  plans: readonly string[] | undefined,
  conversions: readonly Conversion[],
): Subject {
  const { plans: planned = {} } = manifest
  const inlined = inlineProgram(program)
  const compile = (plan: string): ProgramForm => ({
    plan,
    compiled: compileProgram(program, findPlan(plan, planned), { conversions, asDeclared: true }),
    inlined,
  })
  const isInt8 = ({ compiled }: ProgramForm): boolean =>
    Object.values(compiled.graphs).some((graph) => isQuantised(graph) || Object.keys(graph.scales ?? {}).length > 0)
  const fitting = (): ProgramForm[] =>
    planNames(planned).flatMap((plan) => {
      try {
        const form = compile(plan)
        return isInt8(form) ? [] : [form]
      } catch (error) {
        // Skips plans for other programs.
        if (error instanceof HeddleError && error.code.startsWith('plan.')) return []
        throw error
      }
    })
  const forms = plans?.map(compile) ?? fitting()
  const int8 = forms.find(isInt8)
  if (int8 !== undefined) {
    throw usageError('bench.plans', `plan ${int8.plan} computes with int8, but no scales are given here`, {
      hint: 'time a graph of it, or a shipped model with heddle bench encoder',
    })
  }
  return { kind: 'program', name: program.name, forms, flops: (dims) => graphFlops(inlined, dims), typical: program.dims }
}

function graphFlops(graph: Graph, dims: Dims): number {
  const matmuls = graph.nodes.filter((node): node is NodeOf<'matmul'> => node.kind === 'matmul')
  return matmuls.reduce((sum, { a, b, subscripts }) => {
    const extents = new Map<string, number>()
    for (const [axes, id] of [
      [subscripts.a, a],
      [subscripts.b, b],
    ] as const)
      axes.forEach((axis, i) => {
        const extent = graph.values[id]?.shape[i]
        if (extent !== undefined) extents.set(axis, evaluateExtent(extent, dims))
      })
    return sum + 2 * [...extents.values()].reduce((product, extent) => product * extent, 1)
  }, 0)
}

/** Storage types in the order of preference for a name without one. */
const usualTypes: readonly (DType | undefined)[] = ['f32', 'f16', 'bf16']

const rankOf = ({ types }: Pick<KernelEntry, 'types'>): number => {
  const at = usualTypes.indexOf(Object.values(types)[0])
  return at === -1 ? usualTypes.length : at
}

/** Instances of an op in the order of preference for its bare name: f32 first, then f16, then bf16. */
export const inUsualOrder = <E extends Pick<KernelEntry, 'types'>>(instances: readonly E[]): readonly E[] =>
  [...instances].sort((a, b) => rankOf(a) - rankOf(b))

/**
 * Instance of a kernel in a storage type, or by key.
 * @param dtype default: the first of f32, f16 and bf16 that the op has
 */
export function findEntry(
  { kernels }: Pick<Manifest, 'kernels'>,
  name: string,
  dtype: DType | undefined,
): KernelEntry | undefined {
  const named = kernels.find(({ key }) => key === name)
  if (named !== undefined) return named
  const all = inUsualOrder(kernels.filter(({ op }) => op === name))
  const wanted = dtype ?? Object.values(all[0]?.types ?? {})[0]
  const instances = all.filter(({ types }) => Object.values(types).every((type) => type === wanted))
  return instances.find(({ fixedDims }) => Object.keys(fixedDims).length === 0) ?? instances[0]
}

/** One kernel, as a graph of one node with the kernel's dimensions. */
export function kernelSubject(entry: KernelEntry): Subject {
  const values = entry.buffers.map(
    ({ dtype, dims, layout }): GraphValue => ({
      dtype,
      layout,
      shape: dims.map((dim) => ({ factor: 1, dims: [dim] })),
    }),
  )
  const bound = (access: 'in' | 'out') =>
    Object.fromEntries(entry.buffers.flatMap((buffer, id) => (buffer.access === access ? [[buffer.name, id]] : [])))
  const node: NodeOf<'op'> = {
    kind: 'op',
    name: entry.op,
    op: entry.op,
    types: entry.types,
    inputs: bound('in'),
    outputs: bound('out'),
    attrs: {},
  }
  const graph: Graph = {
    name: entry.op,
    values,
    nodes: [node],
    inputs: bound('in'),
    weights: {},
    outputs: bound('out'),
    attrs: [],
  }
  return {
    kind: 'kernel',
    name: entry.key,
    forms: [{ plan: entry.key, graph }],
    flops: (dims) => kernelFlops(entry, dims),
    typical: entry.fixedDims,
  }
}

/**
 * Arithmetic of a kernel. Kernels with schedules count as 0. For a matmul, the summed axis is in two inputs and in no output.
 */
function kernelFlops({ buffers, variants }: KernelEntry, dims: Dims): number | undefined {
  if (variants.length > 0) return 0
  const inputs = buffers.filter(({ access, dims: own }) => access === 'in' && own.length > 1)
  const outputAxes = new Set(buffers.flatMap(({ access, dims: own }) => (access === 'out' ? own : [])))
  const summed = new Set(inputs.flatMap(({ dims: own }) => own.filter((dim) => !outputAxes.has(dim))))
  const factors = inputs.filter(({ dims: own }) => own.some((dim) => summed.has(dim)))
  if (summed.size !== 1 || factors.length !== 2) return undefined
  const axes = new Set(factors.flatMap(({ dims: own }) => own))
  return 2 * [...axes].reduce((product, dim) => product * (dims[dim] ?? 1), 1)
}
