/**
 * Splits the queries of decode attention into heads. The ops that compute them, such as a bias, work on rows of all heads. Here, the columns of such
 * a row are split into a head and its element, so that queries are read from the same tensors, in the same shape, as the step's keys and values.
 */
import { call, dim, index } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import { rowMajor } from '../../ir/layout.js'
import { type Extent, printShape } from '../../ir/shape.js'
import { rewrite } from '../../ir/walk.js'
import { runsBetween, valueAt } from '../graph/edit.js'
import { equalExprs } from '../space/positions.js'
import { illegal, type Member } from '../space/space.js'
import { type AttentionGroup, elementOf } from './elements.js'
import type { RoleOperand } from './roles.js'
import type { Piece } from './slots.js'

/**
 * Element of an operand that `members` compute. The operand's last two axes are the head and its element.
 * @throws usage `plan.illegal` for members that are not elementwise, or read a row of heads at a computed position
 */
export function elementOfHeads(group: AttentionGroup, members: readonly Member[], { value: id, axes }: RoleOperand): Expr {
  const { graph, around, slots } = group
  const made = around.through(id)
  const seen = valueAt(graph.values, id).shape
  const { shape } = valueAt(graph.values, made)
  const [heads, headDim] = seen.slice(-2)
  if (printShape(shape.slice(-1)) === printShape(seen.slice(-1))) {
    const piece = elementOf(group, members, made, { shape: seen, axes })
    return slots.inKernelNames(piece, piece.value, undefined)
  }
  const last = members.at(-1)?.node.name ?? ''
  // The view splits the last axis and no other.
  const runs = runsBetween(shape, seen)
  if (runs?.length !== seen.length - 1 || runs.at(-1) !== 2 || heads === undefined || headDim === undefined)
    throw illegal(group.name, last, group.scores.name, 'its elements are not rows of heads')
  const [head, element] = axes.slice(-2)
  if (!equalExprs(head, index('h')) || !equalExprs(element, index('c')))
    throw illegal(group.name, last, group.scores.name, 'its elements are not rows of heads')
  const whole = elementOf(group, members, made, { shape, axes: [...axes.slice(0, -2), index(column)] })
  const piece = splitColumns(whole, [heads, headDim], () =>
    illegal(group.name, last, group.scores.name, 'a row of heads is read at a computed position'),
  )
  return slots.inKernelNames(piece, piece.value, undefined)
}

/** Index of a column in a row of all heads. */
const column = 'column'

/** Splits every axis of the piece that runs over the columns into heads and elements of a head. */
function splitColumns({ derived, value }: Piece, parts: readonly [Extent, Extent], refuse: () => Error): Piece {
  const { kernel } = derived
  const loop = kernel.body.find((stmt) => stmt.kind === 'storeRow')?.length
  const width = loop?.kind === 'dim' ? loop.name : ''
  const names = [`${width}_heads`, `${width}_elements`] as const
  const axisOf = (tensor: string): number => kernel.tensors.find(({ name }) => name === tensor)?.dims.indexOf(width) ?? -1
  const split = <T>(list: readonly T[], axis: number, by: readonly T[]): readonly T[] =>
    axis < 0 ? list : [...list.slice(0, axis), ...by, ...list.slice(axis + 1)]
  const tensors = kernel.tensors.map((tensor) => {
    const dims = split(tensor.dims, axisOf(tensor.name), names)
    if (dims === tensor.dims) return tensor
    if (tensor.layout.name !== 'row') throw refuse()
    return { ...tensor, dims, layout: rowMajor(dims) }
  })
  const bind = <B extends Piece['derived']['inputs'][number]>(binding: B): B => ({
    ...binding,
    shape: split(binding.shape, axisOf(binding.param), parts),
  })
  const places = [index('h'), index('c')]
  const element = rewrite(value, (node) => {
    if (node.kind === 'dim' && node.name === width) return call('mul', dim(names[0]), dim(names[1]))
    if (node.kind !== 'load') return node
    const axis = axisOf(node.tensor)
    if (axis < 0) return node
    if (!equalExprs(node.indices[axis], index(column))) throw refuse()
    return { ...node, indices: split(node.indices, axis, places) }
  })
  const { inputs, outputs } = derived
  return {
    derived: { ...derived, kernel: { ...kernel, tensors }, inputs: inputs.map(bind), outputs: outputs.map(bind) },
    value: element,
  }
}
