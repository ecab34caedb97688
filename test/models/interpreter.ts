/**
 * Runs assembled graphs as plain TypeScript in double precision: ops by their bodies, matmuls by a loop. It shares neither kernels, layouts nor the
 * planner with the devices, so it is their reference.
 */

import { ops } from '../../specs/index.js'
import type { HostTensor } from '../../src/ir/evaluate.js'
import type { AttrValue, Graph, NodeOf, ValueId } from '../../src/ir/graph.js'
import { kernelName } from '../../src/ir/op_name.js'
import { evaluateExtent } from '../../src/ir/shape.js'
import type { Op } from '../../src/lang/index.js'
import { runOp } from '../../src/lang/run.js'
import type { GraphApplication } from '../../src/runtime/program.js'

type Tensors = Readonly<Record<string, HostTensor>>
type Numbers = Readonly<Record<string, number>>

/** Every program value by name after all applications have run. @param registry ops by the names of their kernels */
export function interpret(
  applications: readonly GraphApplication[],
  inputs: Tensors,
  weights: Tensors,
  dims: Numbers,
  registry: Readonly<Record<string, Op>> = ops,
): Map<string, HostTensor> {
  const values = new Map(Object.entries(inputs))
  for (const { graph, attrs, ...wires } of applications) {
    const own = Object.entries(wires.dims ?? {}).map(([name, extent]) => [name, evaluateExtent(extent, dims)] as const)
    const given = new Map<ValueId, HostTensor>()
    for (const [name, id] of Object.entries(graph.inputs)) given.set(id, known(values.get(wires.inputs[name] ?? ''), name))
    for (const [name, id] of Object.entries(graph.weights)) given.set(id, known(weights[wires.weights[name] ?? ''], name))
    const computed = interpretGraph(graph, given, { ...dims, ...Object.fromEntries(own) }, attrs, registry)
    for (const [name, id] of Object.entries(graph.outputs))
      values.set(known(wires.outputs[name], name), known(computed.get(id), name))
  }
  return values
}

function known<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`${what} has no value`)
  return value
}

function interpretGraph(
  graph: Graph,
  values: Map<ValueId, HostTensor>,
  dims: Numbers,
  attrs: Numbers,
  registry: Readonly<Record<string, Op>>,
): Map<ValueId, HostTensor> {
  const at = (id: ValueId): HostTensor => known(values.get(id), `value ${id} of ${graph.name}`)
  const shape = (id: ValueId): number[] =>
    known(graph.values[id], `value ${id}`).shape.map((extent) => evaluateExtent(extent, dims))
  const number = (value: AttrValue): number =>
    typeof value === 'number' ? value : 'dim' in value ? known(dims[value.dim], value.dim) : known(attrs[value.attr], value.attr)
  for (const node of graph.nodes) {
    if (node.kind === 'view') values.set(node.out, { data: at(node.input).data, shape: shape(node.out) })
    else if (node.kind === 'matmul') values.set(node.out, multiply(node, at(node.a), at(node.b)))
    else {
      const op = known(registry[kernelName(node.op)], node.op)
      // Extents that no input has are those of the outputs.
      const extents = Object.entries(op.outputs).flatMap(([name, decl]) => {
        const found = shape(known(node.outputs[name], name))
        return decl.dims.split(' ').map((dim, i) => [dim, found[i] ?? 0] as const)
      })
      const results = runOp(op, Object.fromEntries(Object.entries(node.inputs).map(([name, id]) => [name, at(id)])), {
        attrs: Object.fromEntries(Object.entries(node.attrs).map(([name, value]) => [name, number(value)])),
        dims: Object.fromEntries(extents),
      })
      for (const [name, id] of Object.entries(node.outputs)) values.set(id, known(results[name], name))
    }
  }
  return values
}

/** The matmul by its definition, over operands rearranged so that the summed axes run fastest. */
function multiply({ subscripts }: NodeOf<'matmul'>, a: HostTensor, b: HostTensor): HostTensor {
  const extents = new Map([
    ...subscripts.a.map((axis, i) => [axis, a.shape[i] ?? 0] as const),
    ...subscripts.b.map((axis, i) => [axis, b.shape[i] ?? 0] as const),
  ])
  const has = (axes: readonly string[]) => (axis: string) => axes.includes(axis)
  const batch = subscripts.out.filter((axis) => has(subscripts.a)(axis) && has(subscripts.b)(axis))
  const m = subscripts.out.filter((axis) => !has(subscripts.b)(axis))
  const n = subscripts.out.filter((axis) => !has(subscripts.a)(axis))
  const k = subscripts.a.filter((axis) => !has(subscripts.out)(axis))
  const count = (axes: readonly string[]): number => axes.reduce((product, axis) => product * (extents.get(axis) ?? 0), 1)
  const [batches, rows, columns, depth] = [count(batch), count(m), count(n), count(k)]
  const left = rearrange(a.data, subscripts.a, [...batch, ...m, ...k], extents)
  const right = rearrange(b.data, subscripts.b, [...batch, ...n, ...k], extents)
  const out = new Float64Array(batches * rows * columns)
  for (let p = 0; p < batches; p++) {
    for (let i = 0; i < rows; i++) {
      for (let j = 0; j < columns; j++) {
        const [x, y] = [(p * rows + i) * depth, (p * columns + j) * depth]
        let total = 0
        for (let c = 0; c < depth; c++) total += (left[x + c] ?? 0) * (right[y + c] ?? 0)
        out[(p * rows + i) * columns + j] = total
      }
    }
  }
  const shape = subscripts.out.map((axis) => extents.get(axis) ?? 0)
  return { data: rearrange(out, [...batch, ...m, ...n], subscripts.out, extents), shape }
}

/** Copies row-major data over the axes `from` to row-major data over the same axes in the order `to`. */
function rearrange(
  data: ArrayLike<number>,
  from: readonly string[],
  to: readonly string[],
  extents: ReadonlyMap<string, number>,
): Float64Array {
  if (from.join() === to.join()) return data instanceof Float64Array ? data : Float64Array.from(data)
  const strides = new Map<string, number>()
  let size = 1
  for (const axis of [...from].reverse()) {
    strides.set(axis, size)
    size *= extents.get(axis) ?? 0
  }
  const result = new Float64Array(size)
  const index = to.map(() => 0)
  let source = 0
  for (let i = 0; i < size; i++) {
    result[i] = data[source] ?? 0
    for (let axis = to.length - 1; axis >= 0; axis--) {
      const [extent, stride] = [extents.get(to[axis] ?? '') ?? 0, strides.get(to[axis] ?? '') ?? 0]
      index[axis] = (index[axis] ?? 0) + 1
      source += stride
      if ((index[axis] ?? 0) < extent) break
      source -= stride * extent
      index[axis] = 0
    }
  }
  return result
}
