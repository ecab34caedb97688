/**
 * A single graph as a program of one application. Callers that load, check or time programs thus handle graphs too, including those under plans that
 * change storage forms.
 */

import { getOwn } from '../ir/get_own.js'
import type { Graph, GraphValue, PackedRows, ValueId } from '../ir/graph.js'
import type { Program, ProgramValue, ProgramValueId } from '../ir/program.js'
import { printShape } from '../ir/shape.js'

/** Name of the added input of sequence lengths, for a graph without one whose plan removes padding. */
const lengthsName = 'lengths'

/**
 * @param attrs values of the graph's attributes
 * @param planned the graph rewritten by a plan: if it removes padding, the program declares the input with the sequence lengths
 */
export function programOf(graph: Graph, attrs: Readonly<Record<string, number>>, planned: Graph = graph): Program {
  const values: ProgramValue[] = []
  const add = (name: string, value: GraphValue): ProgramValueId => values.push({ ...value, name }) - 1
  const valueAt = (id: ValueId): GraphValue => {
    const value = graph.values[id]
    if (value === undefined) throw new Error(`internal: ${graph.name} has no value ${id}`)
    return value
  }
  const ids = (names: Readonly<Record<string, ValueId>>): Record<string, ProgramValueId> =>
    Object.fromEntries(Object.entries(names).map(([name, id]) => [name, add(name, valueAt(id))]))
  const inputs = ids(graph.inputs)
  const outputs = ids(graph.outputs)
  const names = [...new Set(graph.values.flatMap(({ shape }) => shape.flatMap(({ dims }) => dims)))]
  const params = [...new Set(graph.values.flatMap(({ dtype }) => (typeof dtype === 'string' ? [] : [dtype.param])))]
  const taken: Record<string, ProgramValueId> = { ...inputs }
  const { packing } = planned
  const ragged: Program['ragged'][number][] = []
  if (packing !== undefined) {
    const name = lengthsOf(graph, planned, packing)
    taken[name] ??= add(name, { dtype: 'i32', shape: [packing.batch], layout: 'row' })
    const { batch, seq, tokens } = packing
    ragged.push({ batch, seq, tokens: tokens.dims[0] ?? 'tokens', lengths: taken[name] })
  }
  return {
    name: graph.name,
    dims: Object.fromEntries(names.map((dim) => [dim, getOwn(graph.typical ?? {}, dim) ?? 1])),
    values,
    nodes: [
      {
        kind: 'application',
        label: graph.name,
        graph,
        inputs,
        weights: Object.fromEntries(Object.keys(graph.weights).map((name) => [name, name])),
        outputs,
        attrs,
        dims: Object.fromEntries(names.map((dim) => [dim, { factor: 1, dims: [dim] }])),
        types: Object.fromEntries(params.map((param) => [param, { param }])),
        within: [],
      },
    ],
    inputs: taken,
    outputs,
    states: {},
    weights: Object.fromEntries(Object.entries(graph.weights).map(([name, id]) => [name, valueAt(id)])),
    ragged,
  }
}

/**
 * Name of the input that holds the sequence lengths: the one that the planned graph reads, otherwise `lengths`, which is added if the graph has no
 * such input.
 */
function lengthsOf({ inputs, values }: Graph, planned: Graph, { batch, lengths }: PackedRows): string {
  const taken = Object.keys(planned.inputs).find((name) => planned.inputs[name] === lengths && Object.hasOwn(inputs, name))
  if (taken !== undefined) return taken
  const other = values[getOwn(inputs, lengthsName) ?? -1]
  const isTaken = other !== undefined && (other.dtype !== 'i32' || printShape(other.shape) !== printShape([batch]))
  return isTaken ? `${lengthsName} of sequences` : lengthsName
}
