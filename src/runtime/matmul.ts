/**
 * Lowers an einsum to the strided batched matmuls that devices offer. Axes fall into four groups: in both operands and the result (batch),
 * in a and the result (m), in b and the result (n), in both operands only (k). Axes of a group collapse into one if they are contiguous
 * with each other in every tensor that has them, which depends on the layouts. A matmul takes one of the collapsed axes of batch, m and n
 * each, and is repeated over the others. The axes of k are reduced, so they must collapse into one.
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

/** An einsum as matmuls of one shape at several offsets. */
export interface LoweredMatmul {
  readonly matmul: StridedMatmul
  /** First elements of a, b and out of each matmul. A single matmul has one entry of zeros. */
  readonly offsets: readonly Offsets[]
}

export type Offsets = readonly [a: number, b: number, out: number]

type Role = 'a' | 'b' | 'out'
type Operands = Readonly<Record<Role, StridedOperand>>

/** Axes collapsed into one. */
interface Group {
  readonly extent: number
  /** Stride of the collapsed group in each tensor that has it. */
  readonly strides: Readonly<Partial<Record<Role, number>>>
}

/** Group of extent 1. */
const single: Group = { extent: 1, strides: {} }

/** Limit on the matmuls that one einsum launches. */
const maxMatmuls = 65_536

/**
 * @param label names the node in errors
 * @param wholeN true if n must collapse into one axis, as for a bias along it
 * @throws usage `matmul.layout` for an operand without strides, `matmul.axes` for an axis that is in one tensor only or twice in one,
 * `matmul.extent` for disagreeing extents, `matmul.strides` for axes of k that do not collapse, or for too many matmuls
 */
export function lowerMatmul(label: string, operands: Operands, wholeN = false): LoweredMatmul {
  const { a, b, out } = operands
  for (const [role, operand] of Object.entries(operands)) {
    if (operand.strides === undefined) {
      throw usageError('matmul.layout', `${label}: the layout of ${role} (${operand.axes.join(' ')}) has no strides`, {
        hint: 'give the matmul an operand in a strided layout, or convert it by an identity op first',
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
        hint: 'sum or broadcast it in a separate op',
      })
    }
  }
  const shared = a.axes.filter(has(b))
  const batch = collapse(label, operands, shared.filter(has(out)), ['a', 'b', 'out'])
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
  const summed = shared.filter((axis) => !has(out)(axis))
  const [k = single, separate] = collapse(label, operands, summed, ['a', 'b'])
  if (separate !== undefined) throw notCollapsible(label, operands, summed, ['a', 'b'])
  if (wholeN && n.length > 1)
    throw notCollapsible(
      label,
      operands,
      b.axes.filter((axis) => !has(a)(axis)),
      ['b', 'out'],
    )
  const chosen = choose(batch, m, n, k, wholeN)
  if (chosen.matmuls > maxMatmuls) {
    throw usageError('matmul.strides', `${label}: its strides need ${chosen.matmuls} separate matmuls`, {
      hint: `at most ${maxMatmuls} are launched: store its tensors in layouts that keep axes together, or make the matmul a group of the plan`,
    })
  }
  return { matmul: chosen.matmul, offsets: places(chosen.repeated) }
}

interface Choice {
  readonly matmul: StridedMatmul
  /** Axes over which it is repeated. */
  readonly repeated: readonly Group[]
  readonly matmuls: number
}

/** The axes of one matmul that minimise the number of launches. A matmul of one row and one column always has strides. */
function choose(batch: readonly Group[], m: readonly Group[], n: readonly Group[], k: Group, wholeN: boolean): Choice {
  let best: Choice | undefined
  for (const p of [...batch, single]) {
    for (const i of [...m, single]) {
      for (const j of wholeN ? [n[0] ?? single] : [...n, single]) {
        const strides = [inner('a', p, i, k), inner('b', p, j, k), inner('out', p, i, j)] as const
        const [sa, sb, so] = strides
        if (sa === undefined || sb === undefined || so === undefined) continue
        const repeated = [...batch, ...m, ...n].filter((group) => group !== p && group !== i && group !== j)
        const matmuls = repeated.reduce((product, { extent }) => product * extent, 1)
        if (best !== undefined && best.matmuls <= matmuls) continue
        best = { matmul: { extents: [p.extent, i.extent, j.extent, k.extent], strides: [sa, sb, so] }, repeated, matmuls }
      }
    }
  }
  if (best === undefined) throw new Error('internal: a matmul of one row and one column has strides')
  return best
}

/** First elements of every matmul. */
function places(repeated: readonly Group[]): readonly Offsets[] {
  let found: readonly Offsets[] = [[0, 0, 0]]
  for (const { extent, strides } of repeated) {
    const { a = 0, b = 0, out = 0 } = strides
    found = found.flatMap(([x, y, z]) =>
      Array.from({ length: extent }, (_, at): Offsets => [x + at * a, y + at * b, z + at * out]),
    )
  }
  return found
}

const axisOf = ({ axes, extents, strides }: StridedOperand, axis: string): { extent: number; stride: number } => {
  const position = axes.indexOf(axis)
  return { extent: extents[position] ?? 1, stride: strides?.[position] ?? 0 }
}

/** Axes of a group with an extent above 1, outermost first by their strides in the first tensor that has them. */
function stepped(operands: Operands, axes: readonly string[], [lead]: readonly [Role, ...Role[]]): readonly string[] {
  const { [lead]: first } = operands
  return axes.filter((axis) => axisOf(first, axis).extent !== 1).sort((x, y) => axisOf(first, y).stride - axisOf(first, x).stride)
}

/** Merges the axes of a group that are contiguous with each other in every tensor. */
function collapse(
  label: string,
  operands: Operands,
  axes: readonly string[],
  roles: readonly [Role, ...Role[]],
): readonly Group[] {
  for (const axis of axes) {
    const extents = roles.map((role) => axisOf(operands[role], axis).extent)
    if (new Set(extents).size > 1) {
      throw usageError('matmul.extent', `${label}: axis ${axis} has extents ${extents.join(' and ')}`)
    }
  }
  const groups: Group[] = []
  for (const axis of stepped(operands, axes, roles)) {
    const { extent } = axisOf(operands[roles[0]], axis)
    const strides: Partial<Record<Role, number>> = Object.fromEntries(
      roles.map((role) => [role, axisOf(operands[role], axis).stride]),
    )
    const outer = groups.at(-1)
    const contiguous = outer !== undefined && roles.every((role) => outer.strides[role] === (strides[role] ?? 0) * extent)
    if (contiguous) groups.pop()
    groups.push({ extent: contiguous ? outer.extent * extent : extent, strides })
  }
  return groups
}

/** Error for axes that must collapse into one and do not. */
function notCollapsible(label: string, operands: Operands, axes: readonly string[], roles: readonly [Role, ...Role[]]) {
  const order = stepped(operands, axes, roles)
  for (const role of roles) {
    for (const [i, axis] of order.slice(1).entries()) {
      const [outer, step] = [axisOf(operands[role], order[i] ?? axis), axisOf(operands[role], axis)]
      if (outer.stride === step.stride * step.extent) continue
      return usageError(
        'matmul.strides',
        `${label}: axes ${order.join(' ')} of ${role} do not collapse: ${order[i]} has stride ${outer.stride}, ` +
          `${axis} has stride ${step.stride} and extent ${step.extent}`,
        { hint: 'store the tensor in a layout that keeps these axes together and in one order' },
      )
    }
  }
  throw new Error('internal: axes that collapse are reported as separate')
}

/**
 * Strides of one tensor; undefined if neither inner axis is contiguous. An inner axis of extent 1 still gets the stride a dense matrix would
 * have, because matmul libraries check leading dimensions.
 */
function inner(role: Role, batch: Group, first: Group, second: Group): readonly [number, number, number] | undefined {
  let [x, y] = [first.strides[role] ?? 0, second.strides[role] ?? 0]
  if (second.extent === 1) y = x === 1 && first.extent > 1 ? first.extent : 1
  if (first.extent === 1) x = y === 1 ? second.extent : 1
  return x === 1 || y === 1 ? [batch.strides[role] ?? 0, x, y] : undefined
}
