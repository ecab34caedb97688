/** Planning and evaluating the graphs of this folder: the results of a group as one kernel, and as separate nodes. */
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import { applyPlan, type PlannedGraph } from '../../src/fuse/apply.js'
import type { PlannedKernel } from '../../src/fuse/planned_kernel.js'
import type { DTypeRef, Kernel } from '../../src/ir/kernel.js'
import type { MatmulKernel } from '../../src/ir/product.js'
import { runGraph, shapeOf } from '../fuse/host.js'
import type { ProductCase } from './graphs.js'

type Numbers = Readonly<Record<string, number>>

/** The shipped ops and those of this folder. */
export const readOps = (): ReadonlyMap<string, Kernel> =>
  new Map(
    readSpecsOrThrow({ root: process.cwd(), specs: ['specs/ops', 'test/product/ops'] }).kernels.map((kernel) => [
      kernel.name,
      kernel,
    ]),
  )

/** The graph with its group as one kernel. */
export const planned = ({ name, decl, group }: ProductCase, ops: ReadonlyMap<string, Kernel>): PlannedGraph =>
  applyPlan(decl.graph, { name, graph: decl.name, groups: [{ kernel: name, occurrences: [group] }] }, ops)

/** The matmul kernel of a planned case. */
export function productOf({ templates }: PlannedGraph): MatmulKernel {
  const [kernel] = templates.values()
  if (kernel?.kind !== 'matmul') throw new Error('the plan has no matmul kernel')
  return kernel
}

/**
 * A pattern of small numbers, of integers if the type stores some: sums of them are exact, and every term is visible. A tensor called far has a mean
 * of hundreds of its deviations.
 */
export function draw(dtype: DTypeRef, name: string, i: number, most: number): number {
  if (name === 'far') return 1000 + ((i * 7 + (i >> 3)) % 11) - 5
  const n = (i * 7 + name.length * 5 + (i >> 3) + name.charCodeAt(0)) % 11
  if (dtype === 'i32') return n % most
  if (dtype === 'u8') return (n * 53 + i) % 256
  return dtype === 'i8' ? n - 5 : (n - 5) / 4
}

/** Inputs and weights of a case by name. Integers are places in a table of `v` rows. */
export function inputsOf({ decl: { graph } }: ProductCase, dims: Numbers): Readonly<Record<string, Float64Array>> {
  return Object.fromEntries(
    Object.entries({ ...graph.inputs, ...graph.weights }).map(([name, id]) => {
      const size = shapeOf(graph, id, dims).reduce((product, extent) => product * extent, 1)
      const dtype = graph.values[id]?.dtype ?? 'f32'
      return [name, Float64Array.from({ length: size }, (_, i) => draw(dtype, name, i, dims.v ?? 1))]
    }),
  )
}

/** Outputs of a case: node by node, and with its group as one kernel. */
export function bothWays(
  given: ProductCase,
  ops: ReadonlyMap<string, Kernel>,
  dims: Numbers,
): readonly [apart: Outputs, fused: Outputs] {
  const { graph, templates } = planned(given, ops)
  const all = new Map<string, PlannedKernel>([...ops, ...templates])
  const inputs = inputsOf(given, dims)
  return [runGraph(given.decl.graph, all, inputs, dims, {}), runGraph(graph, all, inputs, dims, {})]
}

export type Outputs = Readonly<Record<string, ArrayLike<number>>>
