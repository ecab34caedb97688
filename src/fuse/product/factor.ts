/**
 * A factor of a matmul: an unchanged tensor, or the row program of the members that compute it, run while the factor is loaded. The program has one
 * result, with the axes of the matmul's subscripts, and computes consecutive elements along `k`.
 */
import { dtypeInfo } from '../../ir/dtype.js'
import type { Graph, NodeOf, ValueId } from '../../ir/graph.js'
import type { Kernel } from '../../ir/kernel.js'
import { printShape, type Shape } from '../../ir/shape.js'
import { isUpdating } from '../../ir/update.js'
import { type LayoutsByName, pushValue, valueAt } from '../graph/edit.js'
import type { Derived } from '../rows/derive.js'
import { deriveMembers } from '../space/members.js'
import { illegal, type Member } from '../space/space.js'
import { identityMember } from './identity.js'
import { onlyNodes } from './parts.js'

/** A program that computes a factor, and the name of its result. */
export interface Prologue extends Derived {
  readonly result: string
}

/** Statements that a prologue may have: a reduction over a row is known before the row's elements are. */
const allowed: Readonly<Record<Kernel['body'][number]['kind'], boolean>> = {
  let: true,
  row: true,
  reduce: true,
  storeRow: true,
  scan: false,
  merge: false,
  mergeScan: false,
  foldRow: false,
  foldState: false,
  team: false,
  topK: false,
  argsort: false,
  counts: false,
  histogram: false,
  store: false,
}

/** A factor that members of the group compute. */
export interface ComputedFactor {
  readonly matmul: NodeOf<'matmul'>
  readonly id: ValueId
  readonly makers: readonly Member[]
  /** The factor's axes by role. */
  readonly axes: readonly string[]
}

/** Shape of a member's result in the graph. */
const madeShape = (graph: Graph, { node }: Member): Shape => valueAt(graph.values, Object.values(node.outputs)[0] ?? -1).shape

/** @throws usage `plan.illegal` for members that do not form such a program */
export function deriveFactor(
  graph: Graph,
  group: string,
  { matmul, id, makers, axes }: ComputedFactor,
  layouts: LayoutsByName,
): Prologue {
  const last = makers.at(-1)
  if (last === undefined) throw new Error(`internal: no member makes the factor ${id} of ${matmul.name}`)
  const refuse = (reason: string) => illegal(group, last.node.name, matmul.name, reason)
  const { dtype } = valueAt(graph.values, id)
  if (typeof dtype === 'string' && (dtype === 'i8' || dtypeInfo[dtype].scalar === 'i32'))
    throw refuse(`${last.node.name} makes integers, and a matmul multiplies integers as they are stored: store them first`)
  const updating = makers.find(({ kernel }) => isUpdating(kernel))
  if (updating !== undefined)
    throw refuse(`${updating.node.name} replaces elements in place, which a matmul cannot do while it loads`)
  const written = matmul.subscripts[matmul.a === id ? 'a' : 'b']
  const summed = written[axes.indexOf('k')] ?? 'k'
  if (axes.at(-1) !== 'k') {
    const wanted = [...written.filter((axis) => axis !== summed), summed].join(' ')
    throw refuse(
      `${matmul.name} reads ${last.node.name} as "${written.join(' ')}" and sums over ${summed}: a factor is computed in rows along the summed axis, so let ${last.node.name} make "${wanted}"`,
    )
  }
  // A view before the matmul reshapes the members' values to the matmul's shape, and so does an identity after them.
  const viewed = graph.nodes.some((node) => node.kind === 'view' && node.out === id)
  const values = [...graph.values]
  const shown = viewed ? pushValue(values, valueAt(values, id)) : id
  const names = axes.map((_, i) => `x${i}`)
  const whole: Graph = { ...graph, values }
  const members = viewed ? [...makers, identityMember(whole, matmul.name, id, shown, names)] : makers
  const inside = new Set(makers.map(({ node }) => node))
  const seen = onlyNodes(whole, (node) => node.kind === 'op' && inside.has(node))
  const derived = deriveMembers({ ...seen, outputs: { factor: shown } }, group, members, layouts)
  const { kernel, outputs } = derived
  const [result] = outputs
  const param = kernel.tensors.find(({ name }) => name === result?.param)
  const store = kernel.body.find((stmt) => 'tensor' in stmt && stmt.tensor === param?.name)
  if (param === undefined || outputs.length !== 1) throw refuse(`${last.node.name} has other results than the factor`)
  const readAs = printShape(valueAt(graph.values, id).shape)
  if (param.dims.length !== axes.length)
    throw refuse(
      `${last.node.name} makes "${printShape(madeShape(graph, last))}", which ${matmul.name} reads as "${readAs}" through a view, and a factor is computed along the axes of the matmul: let an op of two dimensions make "${readAs}" itself, with its places by idiv and %, or store it`,
    )
  const other = kernel.body.find((stmt) => !allowed[stmt.kind])
  if (other !== undefined || store?.kind !== 'storeRow' || store.when !== undefined)
    throw refuse(`a factor is computed element by element, from its row at most; ${last.node.name} does more`)
  if (param.layout.name !== 'row') throw refuse(`expected a row-major factor, got layout ${param.layout.name}`)
  return { ...derived, result: param.name }
}
