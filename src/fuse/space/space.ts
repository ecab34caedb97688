/**
 * The iteration space of a group: every node's dimensions as atoms, the rows that the fused kernel runs over, and the axis that its row elements
 * run along. Refuses groups whose nodes cannot share a space, naming the two nodes that conflict.
 */
import { usageError } from '../../errors.js'
import { constructOf } from '../../ir/constructs/index.js'
import type { Graph, NodeOf, ValueId } from '../../ir/graph.js'
import type { Kernel } from '../../ir/kernel.js'
import { printExtent, printShape, sameExtent } from '../../ir/shape.js'
import { type Axes, AxisConflict } from './axes.js'
import type { Member } from './member.js'
import { Relations, readsApart } from './relations.js'

export type { Member } from './member.js'

export interface Space {
  /** Atoms of a member's dimension, outermost first. */
  readonly atomsOf: (member: Member, dim: string) => readonly number[]
  /** Atoms of the rows of the fused kernel. */
  readonly rows: readonly number[]
  /** The atom that row elements run along. */
  readonly inner: number
  readonly axes: Axes
}

/** True if the body defines no row value and combines no elements: each element is independent and may be computed anywhere. */
export const isElementwise = (kernel: Kernel): boolean =>
  kernel.body.every((stmt) => {
    const { makes, elements } = constructOf(stmt).traits
    return makes !== 'rows' && elements !== 'combined'
  })

const together = (first: string, second: string): string =>
  first === second ? `node ${first} cannot be in the kernel` : `nodes ${first} and ${second} cannot be one kernel`

/** @param hint a more specific repair than to leave a node out */
export const illegal = (
  group: string,
  first: string,
  second: string,
  reason: string,
  hint = 'leave one of the two nodes out of the group',
) =>
  usageError('plan.illegal', `group ${group}: ${together(first, second)}: ${reason}`, { hint, about: { nodes: [first, second] } })

/** The value a member's tensor is bound to. */
export function boundValue(member: Member, tensor: string): ValueId {
  const id = member.node.inputs[tensor] ?? member.node.outputs[tensor]
  if (id === undefined) throw new Error(`internal: ${member.node.name} binds no value to ${tensor}`)
  return id
}

/** Builds the space of a group. `views` are the views that connect members. @throws usage `plan.illegal` naming two nodes and the reason */
export function spaceOf(graph: Graph, group: string, members: readonly Member[], views: readonly NodeOf<'view'>[]): Space {
  const related = <T>(first: Member, second: string, act: () => T): T => {
    try {
      return act()
    } catch (error) {
      if (error instanceof AxisConflict) throw illegal(group, first.node.name, second, error.message)
      throw error
    }
  }
  const bound = members.flatMap((member) =>
    member.kernel.tensors.map((tensor) => ({ member, tensor, id: boundValue(member, tensor.name) })),
  )
  const relations = new Relations(graph)
  const { axes } = relations
  const apart = apartOf(graph, members, views, bound)
  for (const each of bound) {
    related(each.member, neighbour(members, each.member, each.id), () => {
      for (const [place, { own, of }] of relations.pairs(each).entries())
        if (apart.get(each)?.includes(place) !== true) axes.unify(own, of)
    })
  }
  for (const view of views) {
    const user = members.find((member) => Object.values(member.node.inputs).includes(view.out))
    const maker = members.find((member) => Object.values(member.node.outputs).includes(view.input))
    const first = user ?? maker
    if (first !== undefined) related(first, maker?.node.name ?? view.name, () => relations.align(view))
  }

  const atomsOf = (member: Member, dim: string): readonly number[] => {
    const axis = relations.ofDim(member, dim)
    if (axis === undefined)
      throw illegal(
        group,
        member.node.name,
        member.node.name,
        `${member.node.name} computes with the extent ${dim}, which no tensor of ${member.node.op} has, and a fused kernel takes extents from tensors: make ${dim} a number or an integer attribute`,
      )
    return axes.atoms(axis)
  }
  for (const member of members) checkRows(group, member, atomsOf)
  joinParallel(axes, members, atomsOf)
  return { axes, atomsOf, ...rootOf(axes, group, members, atomsOf) }
}

/** Refuses a member with two axes of rows that are one axis of the group: each row of the group has an index of its own. */
function checkRows(group: string, member: Member, atomsOf: AtomsOf): void {
  const { node, kernel } = member
  const atoms = kernel.rows.flatMap((axis) => atomsOf(member, axis.dim))
  if (new Set(atoms).size === atoms.length) return
  const twice = kernel.rows.find((axis, i) => kernel.rows.findIndex((other) => other.dim === axis.dim) !== i)?.dim
  const which =
    twice === undefined ? 'two axes of its rows that are one axis of the group' : `${twice} twice among the axes of its rows`
  throw illegal(group, node.name, node.name, `${node.name} has ${which}: give each a dimension of its own`)
}

/** Axes that stay separate; none if the relations conflict, since building them refuses the group with its nodes. */
function apartOf(...given: Parameters<typeof readsApart>): ReturnType<typeof readsApart> {
  try {
    return readsApart(...given)
  } catch (error) {
    if (error instanceof AxisConflict) return new Map()
    throw error
  }
}

const neighbour = (members: readonly Member[], of: Member, id: ValueId): string =>
  members.find(
    (other) => other !== of && [...Object.values(other.node.inputs), ...Object.values(other.node.outputs)].includes(id),
  )?.node.name ?? of.node.name

type AtomsOf = Space['atomsOf']

/** Dimensions that the statements of a body loop over. */
export const loopDims = (kernel: Kernel): readonly string[] => [
  ...new Set(kernel.body.flatMap((stmt) => ('length' in stmt && stmt.length.kind === 'dim' ? [stmt.length.name] : []))),
]

/** Atoms of all axes that a member iterates over, rows first. */
const iteration = (member: Member, atomsOf: AtomsOf): readonly number[] =>
  [...member.kernel.rows.map((axis) => axis.dim), ...loopDims(member.kernel)].flatMap((dim) => [...atomsOf(member, dim)])

/**
 * Unifies the axes of horizontally fused members. Members that touch no common value, such as the biases of query, key and value, may still do so:
 * when their iterations have equal extents, they are taken to be the same axes in order. A common axis at another position means that the values
 * decide which axis is which (in a transposed read, for example), so such members are left unchanged.
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

/** Rows and inner axis: those of the members that reduce, which must agree but for axes of one element; otherwise those of the last member. */
function rootOf(axes: Axes, group: string, members: readonly Member[], atomsOf: AtomsOf): Pick<Space, 'rows' | 'inner'> {
  let root: { member: Member; rows: readonly number[]; inner: number } | undefined
  const longer = (atoms: readonly number[]): readonly number[] => atoms.filter((atom) => !axes.isUnit(atom))
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
    else if (!same(longer(root.rows), longer(rows)) || root.inner !== inner) {
      const [one, other] = [root, { member, rows, inner }].map(
        (each) =>
          `${each.member.node.name} has rows "${printShape(each.rows.map((atom) => axes.extent(atom)))}" along ${printExtent(axes.extent(each.inner))}`,
      )
      const reason = `their rows run over different axes: ${one}, and ${other}`
      throw illegal(group, root.member.node.name, member.node.name, reason)
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
