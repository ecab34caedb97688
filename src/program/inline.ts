/**
 * Inlines a program into one graph: every application's nodes in order, with the program's values, dimensions and storage types. It defines the
 * result of the program under any plan: checks compare results with its nodes, and benches count its arithmetic.
 */

import { getOwn } from '../ir/get_own.js'
import type { AttrValue, Graph, GraphNode, GraphValue, ValueId } from '../ir/graph.js'
import type { DTypeRef } from '../ir/kernel.js'
import type { Application, Program } from '../ir/program.js'
import { evaluateExtent } from '../ir/shape.js'
import { substitute, substituteShape, substituteType } from '../lang/program/match.js'

type Ids = Readonly<Record<string, ValueId>>

/** Name of the output with a state's value after a run. */
export const nextName = (state: string): string => `next ${state}`

/** Name of an application's node in the inlined graph. */
export const inlinedName = (label: string, node: string): string => `${label}/${node}`

/**
 * Inlines a program. Inputs are those of the program and its states; outputs are its results and the value of each state after a run.
 * @param sizes of the dimensions, for attributes that are extents
 */
export function inlineProgram(program: Program, sizes: Readonly<Record<string, number>> = program.dims): Graph {
  const { name, inputs, outputs, states, weights, nodes } = program
  const values: GraphValue[] = program.values.map(({ dtype, shape, layout }) => ({ dtype, shape, layout }))
  const made: GraphNode[] = []
  const weightIds = Object.fromEntries(
    Object.entries(weights).map(([weight, value]): [string, ValueId] => [weight, values.push(value) - 1]),
  )
  // Results of applications are replaced by the values of the inlined graphs, so readers are redirected to these.
  const become = new Map<number, ValueId>()
  const idOf = (id: number): ValueId => become.get(id) ?? id
  for (const [i, node] of nodes.entries()) {
    if (node.kind === 'view') made.push({ ...node, name: `view ${i}`, input: idOf(node.input) })
    else inline(node, { values, made, weightIds, idOf, become, sizes })
  }
  const nextValues = Object.entries(states).flatMap(([state, { next }]): [string, ValueId][] =>
    next === undefined ? [] : [[nextName(state), idOf(next)]],
  )
  const named = (ids: Readonly<Record<string, number>>): Ids =>
    Object.fromEntries(Object.entries(ids).map(([key, id]) => [key, idOf(id)]))
  return {
    name,
    values,
    nodes: made,
    inputs: {
      ...named(inputs),
      ...named(Object.fromEntries(Object.entries(states).map(([state, { value }]) => [state, value]))),
    },
    weights: weightIds,
    outputs: { ...named(outputs), ...Object.fromEntries(nextValues) },
    attrs: [],
    typical: program.dims,
  }
}

interface Inlining {
  readonly values: GraphValue[]
  readonly made: GraphNode[]
  readonly weightIds: Ids
  readonly idOf: (id: number) => ValueId
  readonly become: Map<number, ValueId>
  readonly sizes: Readonly<Record<string, number>>
}

function inline(application: Application, { values, made, weightIds, idOf, become, sizes }: Inlining): void {
  const { graph, label, inputs, weights, outputs, dims, types } = application
  const ids = new Map<ValueId, ValueId>()
  for (const [input, id] of Object.entries(graph.inputs)) ids.set(id, idOf(inputs[input] ?? -1))
  for (const [weight, id] of Object.entries(graph.weights)) ids.set(id, getOwn(weightIds, getOwn(weights, weight) ?? '') ?? -1)
  for (const [id, { dtype, shape, layout }] of graph.values.entries()) {
    const value = { dtype: substituteType(dtype, types), shape: substituteShape(shape, dims), layout }
    if (!ids.has(id)) ids.set(id, values.push(value) - 1)
  }
  const at = (id: ValueId): ValueId => ids.get(id) ?? -1
  const all = (named: Ids): Ids => Object.fromEntries(Object.entries(named).map(([key, id]) => [key, at(id)]))
  for (const node of graph.nodes) {
    const name = inlinedName(label, node.name)
    if (node.kind === 'view') made.push({ ...node, name, input: at(node.input), out: at(node.out) })
    else if (node.kind === 'matmul') made.push({ ...node, name, a: at(node.a), b: at(node.b), out: at(node.out) })
    else {
      const attrs = Object.entries(node.attrs).map(([key, value]) => [key, attrOf(value, application, sizes)] as const)
      const stored = Object.entries(node.types).map(([key, type]): [string, DTypeRef] => [key, substituteType(type, types)])
      made.push({
        ...node,
        name,
        inputs: all(node.inputs),
        outputs: all(node.outputs),
        attrs: Object.fromEntries(attrs),
        types: Object.fromEntries(stored),
      })
    }
  }
  for (const [output, id] of Object.entries(graph.outputs)) become.set(outputs[output] ?? -1, at(id))
}

/** An attribute in the program: a single dimension of the program stays a dimension; any other extent is evaluated to a number. */
function attrOf(value: AttrValue, { attrs, dims }: Application, sizes: Readonly<Record<string, number>>): AttrValue {
  if (typeof value === 'number') return value
  if ('attr' in value) return getOwn(attrs, value.attr) ?? Number.NaN
  const extent = substitute({ factor: 1, dims: [value.dim] }, dims)
  const [only, ...others] = extent.dims
  return only !== undefined && others.length === 0 && extent.factor === 1 ? { dim: only } : evaluateExtent(extent, sizes)
}
