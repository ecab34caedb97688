/**
 * Resolves and checks the names in a plan's `quantised`, before any part of the graph is quantised; and, after the groups have replaced their nodes,
 * that none of its matmuls is left to a library that cannot multiply its operands.
 */
import { usageError } from '../../errors.js'
import { type Graph, type GraphNode, outputsOf, type ValueId } from '../../ir/graph.js'
import { floatName } from '../../lang/node_names.js'
import type { PlanDecl, QuantisedDecl } from '../../lang/plan.js'
import { findNode } from './edit.js'
import type { Int8Propagation } from './int8_propagation.js'

/** Refuses an int8 input or result that is not quantised, and a value with both one scale and a scale per row. @throws usage `plan.quantised` */
export function refuseUnquantised(plan: string, { values, only, across, dynamic }: QuantisedDecl): void {
  const twice = dynamic.find((name) => values.includes(name))
  if (twice !== undefined) {
    throw usageError('plan.quantised', `plan ${plan}: ${twice} has both one scale and a scale per row`, {
      hint: 'name it under values or under dynamic',
      about: { path: ['dynamic', twice] },
    })
  }
  const other = [...only, ...across].find((name) => !values.includes(name))
  if (other === undefined) return
  throw usageError('plan.quantised', `plan ${plan}: ${other} is to be int8, but is not among the quantised values`, {
    hint: `quantised: ${values.join(', ')}`,
    about: { path: [only.includes(other) ? 'only' : 'across', other] },
  })
}

/** The value of a node or input. @throws usage `plan.quantised` for a name the graph lacks */
export function quantisedValue(graph: Graph, plan: string, name: string): ValueId {
  const node = graph.nodes.find((candidate) => candidate.name === name && candidate.kind !== 'view')
  const id = node === undefined ? graph.inputs[name] : outputsOf(node)[0]
  if (id === undefined) {
    throw usageError('plan.quantised', `plan ${plan}: ${graph.name} has no node or input ${name} to quantise`, {
      hint: `nodes: ${graph.nodes.flatMap((known) => (known.kind === 'view' ? [] : [known.name])).join(', ')}`,
      about: { path: [name] },
    })
  }
  return id
}

/** A matmul that reads only its weight as int8. @throws usage `plan.quantised` for another node */
export function floatProduct(graph: Graph, plan: string, propagation: Int8Propagation, name: string): GraphNode {
  const node = findNode(graph, plan, 'weightOnly', name)
  const reason =
    node.kind !== 'matmul'
      ? 'is not a matmul'
      : propagation.weightName(node.b) === undefined || propagation.weightName(node.a) !== undefined
        ? 'does not multiply a value by a weight'
        : propagation.integer.has(node)
          ? 'multiplies a quantised value, and takes both as int8'
          : undefined
  if (reason === undefined) return node
  throw usageError('plan.quantised', `plan ${plan}: ${name} is to take its weight as int8, but ${reason}`, {
    hint: 'weightOnly names matmuls of a float value and a weight',
    about: { path: ['weightOnly', name], nodes: [name] },
  })
}

/** Refuses a matmul of floats by an int8 weight that is in no group: a library multiplies operands of one type. @throws usage `plan.quantised` */
export function refuseUngrouped({ name: plan, quantised }: PlanDecl, { nodes, values }: Graph): void {
  if (quantised === undefined || quantised.weightOnly.length === 0) return
  const isInt8 = (id: ValueId): boolean => values[id]?.dtype === 'i8'
  const left = nodes.find((node) => node.kind === 'matmul' && node.generated === undefined && isInt8(node.b) && !isInt8(node.a))
  if (left === undefined) return
  const [name, scaled] = [left.name, floatName(left.name)]
  throw usageError(
    'plan.quantised',
    `plan ${plan}: ${name} is to take its weight as int8: expected a group with ${name} and ${scaled}, got none; a library multiplies operands of one type`,
    {
      hint: `add a group, such as groups: { ${name}_int8: ['${name}', '${scaled}'] }; a generated kernel converts the weight`,
      about: { path: ['weightOnly', name], nodes: [name] },
    },
  )
}
