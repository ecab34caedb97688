/**
 * Derives a matmul kernel. Matmuls of one input run in one main loop. The members before them are computed while factors are loaded, and the
 * members after them become the epilogue of each element. Roles come from subscripts. Groups that no main loop supports are refused with the node
 * and the reason.
 */
import { type Graph, type GraphNode, inputsOf, type NodeOf, type ValueId } from '../../ir/graph.js'
import type { Kernel } from '../../ir/kernel.js'
import type { ReducedRows } from '../../ir/product.js'
import { sameExtent } from '../../ir/shape.js'
import type { MatmulKernel } from '../../ir/template.js'
import { isUpdating } from '../../ir/update.js'
import { type LayoutsByName, pushValue, valueAt } from '../graph/edit.js'
import type { Derived } from '../rows/derive.js'
import { deriveMembers, isUsed } from '../space/members.js'
import { illegal, type Member } from '../space/space.js'
import { assemble, type FactorPart, type Partials } from './assemble.js'
import { type Accumulated, bareEpilogue, checkEpilogue, foldedScalars, ownColumns, withoutRows } from './epilogue.js'
import { deriveFactor } from './factor.js'
import { identityMember } from './identity.js'
import { mergeParts, NotMerged } from './merged.js'
import { checkPartials, derivePartials, keepsGroups } from './partials.js'
import { onlyNodes, partsOf } from './parts.js'
import { NotReduced, reducedRows, reducesRows } from './reduced_rows.js'
import { type Roles, rolesOf } from './roles.js'
import { withUnitRows } from './unit_rows.js'

type Matmul = NodeOf<'matmul'>

const mostProducts = 4

/** A matmul of a group, with its factors by role. */
interface Product {
  readonly node: Matmul
  readonly roles: Roles
  readonly left: ValueId
  readonly right: ValueId
}

/**
 * @param matmuls the group's matmuls, none of which depends on another
 * @param members its ops
 * @throws usage `plan.illegal` naming two nodes and the reason
 */
export function deriveProducts(
  graph: Graph,
  name: string,
  matmuls: readonly Matmul[],
  members: readonly Member[],
  layouts: LayoutsByName,
): Derived<MatmulKernel> {
  const [first, ...others] = matmuls
  if (first === undefined) throw new Error(`internal: group ${name} has no product`)
  const last = members.at(-1)?.node.name ?? matmuls.at(-1)?.name ?? first.name
  const updating = members.find(({ kernel }) => isUpdating(kernel))
  if (updating !== undefined)
    throw illegal(
      name,
      first.name,
      updating.node.name,
      `${updating.node.name} replaces elements in place, which no kernel with a matmul does`,
    )
  const [product, ...rest] = matmuls.map((node) => productOf(name, node, last))
  if (product === undefined) throw new Error(`internal: group ${name} has no product`)
  for (const [i, other] of rest.entries()) checkShared(graph, name, product, other, others[i] ?? first)
  const all = [product, ...rest] as const
  if (all.length > mostProducts)
    throw illegal(
      name,
      first.name,
      last,
      `a kernel holds at most ${mostProducts} matmuls: more sums than that do not fit the registers`,
    )
  const { after, makers } = partsOf(graph, name, matmuls, members)
  const reducers = after.filter((member) => keepsGroups(member))
  const between = after.filter((member) => !reducers.includes(member))
  checkPartialReaders(name, reducers, between)
  const epilogue = deriveEpilogue(graph, name, all, members, between, layouts)
  const partials = reducers.length === 0 ? undefined : partialsOf(graph, name, all, between, reducers, layouts)
  const part = (node: Matmul, value: ValueId, axes: readonly string[]): FactorPart => {
    const made = makers.get(value) ?? []
    return {
      node: node.name,
      value,
      axes,
      prologue:
        made.length === 0 ? undefined : deriveFactor(graph, name, { matmul: node, id: value, makers: made, axes }, layouts),
    }
  }
  const left = part(product.node, product.left, product.roles.axes.left)
  const right = all.map((each) => part(each.node, each.right, each.roles.axes.right))
  if (epilogue.reduced !== undefined && partials !== undefined)
    throw illegal(name, first.name, last, 'a kernel either stores partials of a row or reduces its parts to results of the row')
  return assemble(graph, name, { batch: product.roles.batch, left, right, epilogue, partials }, layouts)
}

/** A matmul with its factors by role. @throws usage `plan.illegal` for one that does not multiply matrices */
function productOf(group: string, node: Matmul, last: string): Product {
  const roles = rolesOf(node)
  if (typeof roles === 'string') throw illegal(group, node.name, last, `the matmul ${node.name} ${roles}`)
  const [left, right] = roles.left === 'a' ? [node.a, node.b] : [node.b, node.a]
  return { node, roles, left, right }
}

/** Refuses a second matmul that does not have the first one's left factor and extents. */
function checkShared(graph: Graph, group: string, first: Product, other: Product, node: Matmul): void {
  const refuse = (reason: string) => illegal(group, first.node.name, node.name, reason)
  if (other.left !== first.left)
    throw refuse('matmuls of one kernel share the factor that gives their rows, and these have different inputs')
  const shapes = [first, other].map((product) => valueAt(graph.values, product.node.out).shape)
  const [x = [], y = []] = shapes
  if (x.length !== y.length || !x.every((extent, i) => sameExtent(extent, y[i] ?? extent)))
    throw refuse('matmuls of one kernel have results of one shape')
  const axes = [first, other].map(({ roles: { axes, batch } }) => JSON.stringify([axes.left, axes.out, batch]))
  if (axes[0] !== axes[1]) throw refuse('matmuls of one kernel have the same rows, columns and sums in the same places')
  const types = [first, other].map(({ right }) => valueAt(graph.values, right).dtype)
  if ((types[0] === 'i8') !== (types[1] === 'i8')) throw refuse('one of them multiplies int8 and the other does not')
}

/** Derives the epilogue: the members after the matmuls, or a plain store of each. */
function deriveEpilogue(
  graph: Graph,
  group: string,
  products: readonly [Product, ...Product[]],
  members: readonly Member[],
  after: readonly Member[],
  layouts: LayoutsByName,
): Accumulated {
  const [{ node: first, roles }] = products
  const last = after.at(-1)?.node.name ?? first.name
  if (after.length === 0 && products.length === 1) return bareEpilogue(graph, group, first, roles, layouts)
  const inside = new Set<GraphNode>([...members.map(({ node }) => node), ...products.map(({ node }) => node)])
  const values = [...graph.values]
  const stored: Member[] = []
  const sums = products.map(({ node }) => {
    const viewed = graph.nodes.some((view) => view.kind === 'view' && view.input === node.out)
    if (after.length > 0 && !viewed && !isUsed(graph, node.out, inside)) return node.out
    const sum = pushValue(values, valueAt(values, node.out))
    stored.push(identityMember({ ...graph, values }, node.name, sum, node.out, roles.axes.out))
    return sum
  })
  const others = onlyNodes({ ...graph, values }, (node) => !inside.has(node) || after.some((member) => member.node === node))
  const seen = { ...others, nodes: [...stored.map(({ node }) => node), ...others.nodes] }
  const derived = deriveMembers(seen, group, [...stored, ...after], layouts)
  const accumulators = sums.map((sum, i) => {
    const found = derived.inputs.find(({ value }) => value === sum)?.param
    const unread = products[i]?.node.name ?? first.name
    if (found === undefined) throw illegal(group, unread, last, `no op of the group reads the matmul ${unread}`)
    return found
  })
  const whole = { ...derived, kernel: withoutRows(derived.kernel) }
  if (after.length > 0 && reducesRows(foldedScalars(whole.kernel, accumulators), accumulators)) {
    const reduced = reduction(group, first, last, whole.kernel, accumulators)
    return { ...whole, accumulators, reduced, named: namesOf(whole.kernel, accumulators[0] ?? '', roles) }
  }
  const { kernel: epilogue, ...bound } = merged(
    graph,
    group,
    first,
    last,
    { ...whole, kernel: foldedScalars(whole.kernel, accumulators) },
    accumulators,
  )
  checkEpilogue(epilogue, group, { first: first.name, last, out: first.subscripts.out, accumulators })
  const kernel = ownColumns(epilogue, accumulators)
  return { ...bound, kernel, accumulators, named: namesOf(kernel, accumulators[0] ?? '', roles) }
}

/** The reductions of an epilogue over whole rows. @throws usage `plan.illegal` */
function reduction(group: string, first: Matmul, last: string, kernel: Kernel, accumulators: readonly string[]): ReducedRows {
  try {
    return reducedRows(kernel, accumulators)
  } catch (error) {
    if (error instanceof NotReduced) throw illegal(group, first.name, last, error.message)
    throw error
  }
}

/** An epilogue over the matmul's own axes. @throws usage `plan.illegal` */
function merged(
  graph: Graph,
  group: string,
  first: Matmul,
  last: string,
  epilogue: Derived,
  accumulators: readonly string[],
): Derived {
  try {
    return mergeParts(withUnitRows(epilogue, accumulators), accumulators, valueAt(graph.values, first.out).shape)
  } catch (error) {
    if (error instanceof NotMerged) throw illegal(group, first.name, last, error.message)
    throw error
  }
}

/** Refuses members that read partials in the kernel that computes them, where only some of a row's partials are known. */
function checkPartialReaders(group: string, reducers: readonly Member[], others: readonly Member[]): void {
  for (const { node } of reducers) {
    const made = Object.values(node.outputs)
    const reader = [...others, ...reducers].find((member) => inputsOf(member.node).some((id) => made.includes(id)))
    if (reader !== undefined)
      throw illegal(
        group,
        node.name,
        reader.node.name,
        `${reader.node.name} reduces the partials of ${node.name} over whole rows, in a kernel of its own`,
      )
  }
}

/** The program of partials of the matmuls, which it reads as the graph's values. */
function partialsOf(
  graph: Graph,
  group: string,
  products: readonly [Product, ...Product[]],
  between: readonly Member[],
  reducers: readonly Member[],
  layouts: LayoutsByName,
): Partials {
  const [{ node: first, roles }] = products
  const derived = derivePartials(graph, group, between, reducers, layouts)
  const accumulators = products.map(({ node }) => derived.inputs.find(({ value }) => value === node.out)?.param)
  const read = accumulators.flatMap((param) => param ?? [])
  checkPartials(derived.kernel, group, { first: first.name, last: reducers.at(-1)?.node.name ?? first.name, products: read })
  return { ...derived, accumulators, named: namesOf(derived.kernel, read[0] ?? '', roles) }
}

/** The epilogue's names of the matmul's axes, by role. */
function namesOf(epilogue: Kernel, accumulator: string, { axes }: Roles): ReadonlyMap<string, string> {
  const dims = epilogue.tensors.find(({ name }) => name === accumulator)?.dims ?? []
  return new Map(axes.out.map((axis, i) => [axis, dims[i] ?? axis]))
}
