/**
 * The iteration space of a group: every node's dimensions as atoms, the rows the fused kernel runs over, and the axis its
 * row elements run along. Refuses groups whose nodes cannot share a space, naming the two nodes that conflict.
 */
import { usageError } from '../../errors.js'
import { constructOf } from '../../ir/constructs/index.js'
import type { Graph, NodeOf, ValueId } from '../../ir/graph.js'
import type { Kernel } from '../../ir/kernel.js'
import { printShape, sameExtent } from '../../ir/shape.js'
import { Axes, AxisConflict } from './axes.js'

/** A node of the group with the kernel of its op. */
export interface Member {
  readonly node: NodeOf<'op'>
  readonly kernel: Kernel
}

export interface Space {
  /** Atoms of a member's dimension, outermost first. */
  readonly atomsOf: (member: Member, dim: string) => readonly number[]
  /** Atoms of the rows of the fused kernel. */
  readonly rows: readonly number[]
  /** The atom row elements run along. */
  readonly inner: number
  readonly axes: Axes
}

/** True when the body makes no row value and combines no elements: each element stands alone and may be computed anywhere. */
export const isElementwise = (kernel: Kernel): boolean =>
  kernel.body.every((stmt) => {
    const { makes, elements } = constructOf(stmt).traits
    return makes !== 'rows' && elements !== 'combined'
  })

export const illegal = (group: string, first: string, second: string, reason: string) =>
  usageError('plan.illegal', `group ${group}: nodes ${first} and ${second} cannot be one kernel: ${reason}`, {
    hint: 'leave one of the two nodes out of the group',
    about: { nodes: [first, second] },
  })

/** The value a member's tensor is bound to. */
export function boundValue(member: Member, tensor: string): ValueId {
  const id = member.node.inputs[tensor] ?? member.node.outputs[tensor]
  if (id === undefined) throw new Error(`internal: ${member.node.name} binds no value to ${tensor}`)
  return id
}

/** Works out the space of a group. `views` are the views that connect members. @throws usage `plan.illegal` naming two nodes and the reason */
export function spaceOf(graph: Graph, group: string, members: readonly Member[], views: readonly NodeOf<'view'>[]): Space {
  const axes = new Axes()
  const ofValue = new Map<ValueId, readonly number[]>()
  const valueAxes = (id: ValueId): readonly number[] => {
    const known = ofValue.get(id)
    if (known !== undefined) return known
    const made = (graph.values[id]?.shape ?? []).map((extent) => axes.add(extent, 'n'))
    ofValue.set(id, made)
    return made
  }
  const ofDim = new Map<string, number>()
  const key = (member: Member, dim: string) => `${member.node.name}.${dim}`
  const related = (first: Member, second: string, act: () => void): void => {
    try {
      act()
    } catch (error) {
      if (error instanceof AxisConflict) throw illegal(group, first.node.name, second, error.message)
      throw error
    }
  }

  const made = new Set(members.flatMap(({ node }) => Object.values(node.outputs)))
  for (const member of members) {
    const seen = new Map<ValueId, string>()
    for (const tensor of member.kernel.tensors) {
      const id = boundValue(member, tensor.name)
      // A tensor that a member reads along several of its axes, such as documents of queries and of keys, makes no axes of them one.
      const again = (seen.get(id) ?? tensor.dims.join(' ')) !== tensor.dims.join(' ') && !made.has(id)
      seen.set(id, seen.get(id) ?? tensor.dims.join(' '))
      const extents = graph.values[id]?.shape ?? []
      related(member, neighbour(members, member, id), () => {
        tensor.dims.forEach((dim, i) => {
          const extent = extents[i]
          const position = valueAxes(id)[i]
          if (extent === undefined || position === undefined) {
            throw new AxisConflict(`${tensor.name} is "${tensor.dims.join(' ')}", its value "${printShape(extents)}"`)
          }
          const known = ofDim.get(key(member, dim))
          if (known === undefined) ofDim.set(key(member, dim), axes.add(extent, dim))
          if (!again) axes.unify(ofDim.get(key(member, dim)) ?? position, position)
        })
      })
    }
  }
  for (const view of views) {
    const user = members.find((member) => Object.values(member.node.inputs).includes(view.out))
    const maker = members.find((member) => Object.values(member.node.outputs).includes(view.input))
    const first = user ?? maker
    if (first === undefined) continue
    related(first, maker?.node.name ?? view.name, () => axes.alignView(valueAxes(view.input), valueAxes(view.out)))
  }

  const atomsOf = (member: Member, dim: string): readonly number[] => {
    const axis = ofDim.get(key(member, dim))
    if (axis === undefined) throw new Error(`internal: dimension ${dim} of ${member.node.name} has no axis`)
    return axes.atoms(axis)
  }
  joinParallel(axes, members, atomsOf)
  return { axes, atomsOf, ...rootOf(group, members, atomsOf) }
}

const neighbour = (members: readonly Member[], of: Member, id: ValueId): string =>
  members.find(
    (other) => other !== of && [...Object.values(other.node.inputs), ...Object.values(other.node.outputs)].includes(id),
  )?.node.name ?? of.node.name

type AtomsOf = Space['atomsOf']

/** Dimensions the statements of a body loop over. */
const loopDims = (kernel: Kernel): readonly string[] => [
  ...new Set(kernel.body.flatMap((stmt) => ('length' in stmt && stmt.length.kind === 'dim' ? [stmt.length.name] : []))),
]

/** Atoms of everything a member iterates over, rows first. */
export const iteration = (member: Member, atomsOf: AtomsOf): readonly number[] =>
  [...member.kernel.rows.map((axis) => axis.dim), ...loopDims(member.kernel)].flatMap((dim) => [...atomsOf(member, dim)])

/**
 * Members that touch no common value, such as the biases of query, key and value, may still run side by side: when their
 * iterations have equal extents, they are taken to be the same axes in order. An axis in common at another place means that the
 * values decide which axis is which (a transposed read, say), so such members are left as they are.
 */
function joinParallel(axes: Axes, members: readonly Member[], atomsOf: AtomsOf): void {
  const last = members.at(-1)
  if (last === undefined) return
  for (const member of members) {
    const [mine, root] = [iteration(member, atomsOf), iteration(last, atomsOf)]
    if (mine.length !== root.length) continue
    const pairs = mine.map((atom, i) => [atom, root[i] ?? atom] as const)
    if (pairs.some(([a, b]) => a !== b && (root.includes(a) || mine.includes(b)))) continue
    if (!pairs.every(([a, b]) => sameExtent(axes.extent(a), axes.extent(b)))) continue
    for (const [a, b] of pairs) axes.unify(a, b)
  }
}

const same = (a: readonly number[], b: readonly number[]): boolean => a.length === b.length && a.every((atom, i) => atom === b[i])

/** Rows and inner axis: those of the members that reduce, which must agree; otherwise those of the last member. */
function rootOf(group: string, members: readonly Member[], atomsOf: AtomsOf): Pick<Space, 'rows' | 'inner'> {
  let root: { member: Member; rows: readonly number[]; inner: number } | undefined
  for (const member of members) {
    if (isElementwise(member.kernel)) continue
    const rows = member.kernel.rows.flatMap((axis) => atomsOf(member, axis.dim))
    const loops = loopDims(member.kernel).map((dim) => atomsOf(member, dim))
    const split = loops.find((atoms) => atoms.length > 1)
    if (split !== undefined) {
      const finer = members.find(
        (other) => other !== member && other.kernel.dims.some((dim) => same(atomsOf(other, dim), split.slice(0, 1))),
      )
      throw illegal(
        group,
        member.node.name,
        finer?.node.name ?? member.node.name,
        `the row of ${member.node.name} is split by the other's axes`,
      )
    }
    const inner = loops[0]?.[0]
    if (inner === undefined) continue
    if (root === undefined) root = { member, rows, inner }
    else if (!same(root.rows, rows) || root.inner !== inner) {
      throw illegal(group, root.member.node.name, member.node.name, 'their rows run over different axes')
    }
  }
  if (root !== undefined) return root
  const last = members.at(-1)
  const all =
    last === undefined
      ? []
      : [...last.kernel.rows.map((axis) => axis.dim), ...loopDims(last.kernel)].flatMap((dim) => atomsOf(last, dim))
  const inner = all.at(-1)
  if (inner === undefined) throw usageError('plan.illegal', `group ${group} has no axis to run along`)
  return { rows: all.slice(0, -1), inner }
}
