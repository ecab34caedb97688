/**
 * Joins a project's kernels with those of the standard library that its graphs run, under the names in generated source. Each is named after its
 * op, without the qualifier, and no two may have the same name. Runs last, before source is emitted.
 */
import { usageError } from '../errors.js'
import type { Graph } from '../ir/graph.js'
import type { Kernel, SourceSpan } from '../ir/kernel.js'
import { isStandard, kernelName } from '../ir/op_name.js'
import { type Extent, sameExtent } from '../ir/shape.js'
import {
  dequantize,
  locateRows,
  packIntegers,
  packRows,
  quantize,
  sequenceStarts,
  unpackIntegers,
  unpackRows,
} from '../std/index.js'
import type { Planned } from './plans.js'

type PlannedGraphs = Planned['graphs']

/** Input of code generation for a project. */
export interface Linked extends Planned {
  /** Kernels of the project's ops, of the library ops that it runs, and of its plans. */
  readonly kernels: readonly Kernel[]
}

/**
 * @param ops kernels of the project's ops, including re-exported ones of the library
 * @param standard the other kernels of the library
 * @param graphs the project's graphs as declared, which run without a plan
 * @throws usage `std.name` when a kernel of the project has the name of one of the library that a graph runs
 */
export function linkKernels(
  planned: Planned,
  ops: readonly Kernel[],
  standard: readonly Kernel[],
  graphs: Readonly<Record<string, { readonly graph: Graph }>>,
): Linked {
  const all = [...Object.values(graphs).map(({ graph }) => graph), ...Object.values(planned.graphs).flatMap(Object.values<Graph>)]
  const runs = new Map(all.flatMap((graph) => opsOf(graph).map((op) => [op, graph.name])))
  const taken = [...ops, ...standard.filter(({ name }) => runs.has(name))]
  const own = new Map<string, SourceSpan>()
  for (const { name, source } of [...ops, ...planned.kernels, ...planned.templates]) if (!isStandard(name)) own.set(name, source)
  for (const { name } of taken) {
    const twin = isStandard(name) ? own.get(kernelName(name)) : undefined
    if (twin === undefined) continue
    const user = runs.get(name)
    const why = user === undefined ? 're-exported by a spec' : `run by ${user}`
    throw usageError('std.name', `${twin.file}:${twin.line}: ${kernelName(name)} has the name of ${name}, which is ${why}`, {
      hint: `rename it: the kernels of both would be called ${kernelName(name)}`,
    })
  }
  return {
    ...planned,
    kernels: [...taken.map((kernel) => ({ ...kernel, name: kernelName(kernel.name) })), ...planned.kernels],
    graphs: linkGraphs(planned.graphs),
  }
}

/** Ops that a graph runs, and ops that a program runs between it and others. Padding and int8 belong to the plan, not to the nodes. */
const opsOf = (graph: Graph): string[] => {
  const { nodes, packing, scales = {} } = graph
  return [
    ...nodes.flatMap((node) => (node.kind === 'op' ? [node.op] : [])),
    ...(packing === undefined ? [] : [sequenceStarts, locateRows, packRows, unpackRows]).map(({ name }) => name),
    ...(packing === undefined || !hasIntegerRows(graph, packing.tokens) ? [] : [packIntegers, unpackIntegers]).map(
      ({ name }) => name,
    ),
    ...(Object.keys(scales).length === 0 ? [] : [quantize, dequantize]).map(({ name }) => name),
  ]
}

/** True if a graph takes or returns integers per token, such as ids. */
const hasIntegerRows = ({ values, inputs, outputs }: Graph, tokens: Extent): boolean =>
  [...Object.values(inputs), ...Object.values(outputs)].some((id) => {
    const value = values[id]
    return value?.dtype === 'i32' && value.shape[0] !== undefined && sameExtent(value.shape[0], tokens)
  })

const linkGraphs = (plans: PlannedGraphs): PlannedGraphs => mapValues(plans, (graphs) => mapValues(graphs, linkGraph))

/** Replaces the ops of a graph's nodes by kernel names, at any number of rows. */
export const linkGraph = (graph: Graph): Graph => ({
  ...graph,
  nodes: graph.nodes.map((node) => (node.kind === 'op' ? { ...node, op: kernelName(node.op) } : node)),
  ...(graph.byRows === undefined
    ? {}
    : { byRows: { ...graph.byRows, few: graph.byRows.few.map((each) => ({ ...each, graph: linkGraph(each.graph) })) } }),
})

const mapValues = <T>(record: Readonly<Record<string, T>>, map: (value: T) => T): Record<string, T> =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value)]))
