/**
 * Scales of the rows of int8 values while a graph runs. Each row has one, so the scales are a tensor over the value's leading axes. They follow the
 * rows: a view that preserves rows reshapes the scales with them, and a node that only moves rows moves the scales too. A node that spreads elements
 * of one row over several is refused, since no scale would fit those.
 */
import { usageError } from '../../errors.js'
import { index as indexVar } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import type { GraphNode, GraphValue, NodeOf, ValueId } from '../../ir/graph.js'
import type { Kernel } from '../../ir/kernel.js'
import { type Extent, multiplyExtents, printShape, type Shape, sameExtent } from '../../ir/shape.js'
import { freeNames } from '../../ir/walk.js'
import { scalesName } from '../../lang/node_names.js'
import { equalExprs } from '../space/positions.js'
import { pushValue, reshape, valueAt } from './edit.js'

/** The scales of a value: one for each index along its first `axes` axes, whose extents they have. */
export interface ScalesOf {
  readonly id: ValueId
  readonly axes: number
}

const one: Extent = { factor: 1, dims: [] }

export class RowScales {
  readonly #plan: string
  readonly #values: GraphValue[]
  readonly #nodes: GraphNode[]
  readonly #steps = new Map<ValueId, ScalesOf>()

  /** @param values @param nodes those of the new graph: nodes for scales are added to them */
  constructor(plan: string, values: GraphValue[], nodes: GraphNode[]) {
    this.#plan = plan
    this.#values = values
    this.#nodes = nodes
  }

  /** Scales of the rows of a value of the original graph, if any. */
  of(id: ValueId): ScalesOf | undefined {
    return this.#steps.get(id)
  }

  set(id: ValueId, steps: ScalesOf): void {
    this.#steps.set(id, steps)
  }

  /** The scales as a vector with one element per row of the value as a matrix. */
  flat({ id }: ScalesOf, name: string): ValueId {
    return reshape(this.#values, this.#nodes, id, [multiplyExtents(valueAt(this.#values, id).shape)], scalesName(name))
  }

  /** @throws usage `plan.quantised` for a view that puts elements of one row into several, or several rows into one */
  view({ name, input, out }: NodeOf<'view'>): void {
    const steps = this.#steps.get(input)
    if (steps === undefined) return
    const [from, to] = [input, out].map((id) => valueAt(this.#values, id).shape)
    const axes = rowAxes(from ?? [], steps.axes, to ?? [])
    if (axes === undefined) {
      throw this.#refuse(
        `the view ${name} from "${printShape(from ?? [])}" to "${printShape(to ?? [])}" regroups rows, which have a scale each`,
        [name],
      )
    }
    const shape = (to ?? []).slice(0, axes)
    this.#steps.set(out, { axes, id: reshape(this.#values, this.#nodes, steps.id, shape, scalesName(name)) })
  }

  /** @throws usage `plan.quantised` for a node that moves elements between rows */
  move(node: NodeOf<'op'>, moved: string, kernel: Kernel): void {
    const [result, out] = Object.entries(node.outputs)[0] ?? []
    const input = node.inputs[moved]
    const steps = input === undefined ? undefined : this.#steps.get(input)
    if (steps === undefined || input === undefined || result === undefined || out === undefined) return
    const shape = valueAt(this.#values, input).shape
    if (steps.axes !== shape.length - 1 || !movesRows(kernel, moved))
      throw this.#refuse(`${node.name} moves elements between rows, which have a scale each`, [node.name])
    // The scales are rows of one element, so a node that moves rows can move them.
    const column = scalesName(node.name)
    const x = reshape(this.#values, this.#nodes, steps.id, [...shape.slice(0, -1), one], `${column}.x`)
    const rows = valueAt(this.#values, out).shape.slice(0, -1)
    const y = pushValue(this.#values, { dtype: 'f32', shape: [...rows, one], layout: 'row' })
    const types = Object.fromEntries(Object.keys(node.types).map((param) => [param, 'f32' as const]))
    this.#nodes.push({ ...node, name: column, types, inputs: { ...node.inputs, [moved]: x }, outputs: { [result]: y } })
    this.#steps.set(out, { axes: rows.length, id: reshape(this.#values, this.#nodes, y, rows, `${column}.y`) })
  }

  #refuse(reason: string, nodes: readonly string[]): Error {
    return usageError('plan.quantised', `plan ${this.#plan}: ${reason}`, {
      hint: 'quantise an operand as the matmul reads it: in rows along all that it sums over',
      about: { nodes },
    })
  }
}

/** Number of leading axes of a shape that span the rows which the first `axes` axes of another span; undefined if no number does. */
export function rowAxes(from: Shape, axes: number, to: Shape): number | undefined {
  const [rows, rest] = [from.slice(0, axes), from.slice(axes)].map(multiplyExtents)
  if (rows === undefined || rest === undefined) return undefined
  for (let at = 0; at <= to.length; at++) {
    const [first, last] = [to.slice(0, at), to.slice(at)].map(multiplyExtents)
    if (first !== undefined && last !== undefined && sameExtent(first, rows) && sameExtent(last, rest)) return at
  }
  return undefined
}

/**
 * True if every result is a row of the moved tensor, or zeros: at the same index of the last axis, from rows that do not depend on that index.
 */
function movesRows({ body, tensors }: Kernel, moved: string): boolean {
  const columns = (name: string) => tensors.find((tensor) => tensor.name === name)?.dims.at(-1)
  return body.every((stmt) => {
    if (stmt.kind !== 'storeRow' || columns(stmt.tensor) !== columns(moved)) return false
    const isIndependent = (expr: Expr): boolean => !freeNames(expr).has(stmt.index)
    const isRow = (expr: Expr): boolean => {
      if (expr.kind === 'const') return true
      if (expr.kind === 'load')
        return equalExprs(expr.indices.at(-1), indexVar(stmt.index)) && expr.indices.slice(0, -1).every(isIndependent)
      const [when, left, right] = expr.kind === 'call' ? expr.args : []
      return when !== undefined && left !== undefined && right !== undefined && isIndependent(when) && isRow(left) && isRow(right)
    }
    return isRow(stmt.value)
  })
}
