/**
 * Lowers an einsum-style product to the strided batched matmul devices offer. Axes fall into four groups: in both operands
 * and the result (batch), in a and the result (m), in b and the result (n), in both operands only (k). A group of several
 * axes must collapse to one stride in every tensor that has it; layouts decide whether it does.
 */
import { usageError } from '../errors.js'

export interface StridedOperand {
  /** Axis names, one per dimension. */
  readonly axes: readonly string[]
  readonly extents: readonly number[]
  /** Element strides; undefined when the tensor's layout has none. */
  readonly strides: readonly number[] | undefined
}

export interface StridedMatmul {
  /** batch, m, n, k */
  readonly extents: readonly [number, number, number, number]
  /** Element strides: a (batch, m, k), b (batch, n, k), out (batch, m, n). */
  readonly strides: readonly [
    readonly [number, number, number],
    readonly [number, number, number],
    readonly [number, number, number],
  ]
}

type Role = 'a' | 'b' | 'out'
type Operands = Readonly<Record<Role, StridedOperand>>

interface Group {
  readonly extent: number
  /** Stride of the collapsed group in each tensor that has it. */
  readonly strides: Readonly<Partial<Record<Role, number>>>
}

/**
 * @param label names the node in errors
 * @throws usage `matmul.layout` for an operand without strides, `matmul.axes` for an axis that is in one tensor only or twice,
 * `matmul.extent` for disagreeing extents, `matmul.strides` for a group that does not collapse or an operand without a unit stride
 */
export function lowerMatmul(label: string, operands: Operands): StridedMatmul {
  const { a, b, out } = operands
  for (const [role, operand] of Object.entries(operands)) {
    if (operand.strides === undefined) {
      throw usageError('matmul.layout', `${label}: the layout of ${role} (${operand.axes.join(' ')}) has no strides`, {
        hint: 'give the matmul an operand in a strided layout, or convert it by an identity op before',
      })
    }
    if (new Set(operand.axes).size !== operand.axes.length) {
      throw usageError('matmul.axes', `${label}: ${role} names an axis twice: ${operand.axes.join(' ')}`)
    }
  }
  const has = (operand: StridedOperand) => (axis: string) => operand.axes.includes(axis)
  for (const axis of new Set([...a.axes, ...b.axes, ...out.axes])) {
    if ([a, b, out].filter((operand) => has(operand)(axis)).length < 2) {
      throw usageError('matmul.axes', `${label}: axis ${axis} is in one tensor only`, {
        hint: 'sum or broadcast it by an op of its own',
      })
    }
  }
  const shared = a.axes.filter(has(b))
  const batch = collapse(label, operands, shared.filter(has(out)), ['a', 'b', 'out'])
  const k = collapse(
    label,
    operands,
    shared.filter((axis) => !has(out)(axis)),
    ['a', 'b'],
  )
  const m = collapse(
    label,
    operands,
    a.axes.filter((axis) => !has(b)(axis)),
    ['a', 'out'],
  )
  const n = collapse(
    label,
    operands,
    b.axes.filter((axis) => !has(a)(axis)),
    ['b', 'out'],
  )
  return {
    extents: [batch.extent, m.extent, n.extent, k.extent],
    strides: [inner(label, 'a', batch, m, k), inner(label, 'b', batch, n, k), inner(label, 'out', batch, m, n)],
  }
}

/** Merges the axes of a group into one, outermost first by their strides in the first tensor that has them. */
function collapse(label: string, operands: Operands, axes: readonly string[], roles: readonly Role[]): Group {
  const find = (role: Role, axis: string): { extent: number; stride: number } => {
    const position = operands[role].axes.indexOf(axis)
    return { extent: operands[role].extents[position] ?? 1, stride: operands[role].strides?.[position] ?? 0 }
  }
  const [lead] = roles
  if (lead === undefined) throw new Error('internal: a matmul axis group without tensors')
  for (const axis of axes) {
    const extents = roles.map((role) => find(role, axis).extent)
    if (new Set(extents).size > 1) {
      throw usageError('matmul.extent', `${label}: axis ${axis} has extents ${extents.join(' and ')}`)
    }
  }
  const order = axes.filter((axis) => find(lead, axis).extent !== 1).sort((x, y) => find(lead, y).stride - find(lead, x).stride)
  for (const role of roles) {
    for (const [i, axis] of order.slice(1).entries()) {
      const outer = find(role, order[i] ?? axis)
      const step = find(role, axis)
      if (outer.stride !== step.stride * step.extent) {
        throw usageError(
          'matmul.strides',
          `${label}: axes ${order.join(' ')} of ${role} do not collapse: ${order[i]} has stride ${outer.stride}, ` +
            `${axis} has stride ${step.stride} and extent ${step.extent}`,
          { hint: 'store the tensor in a layout that keeps these axes together' },
        )
      }
    }
  }
  const last = order.at(-1)
  return {
    extent: order.reduce((product, axis) => product * find(lead, axis).extent, 1),
    strides: Object.fromEntries(roles.map((role) => [role, last === undefined ? 0 : find(role, last).stride])),
  }
}

/**
 * The strides of one tensor. An inner axis of extent 1 is never stepped along; it still gets the stride a dense matrix would
 * have, because matmul libraries check leading dimensions.
 */
function inner(label: string, role: Role, batch: Group, first: Group, second: Group): readonly [number, number, number] {
  let [x, y] = [first.strides[role] ?? 0, second.strides[role] ?? 0]
  if (second.extent === 1) y = x === 1 && first.extent > 1 ? first.extent : 1
  if (first.extent === 1) x = y === 1 ? second.extent : 1
  if (x !== 1 && y !== 1) {
    throw usageError('matmul.strides', `${label}: ${role} has inner strides ${x} and ${y}; one of them must be 1`, {
      hint: 'make one of the multiplied axes contiguous',
    })
  }
  return [batch.strides[role] ?? 0, x, y]
}
