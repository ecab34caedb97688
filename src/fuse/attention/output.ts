/**
 * The output of an attention group: ops that lay out the result, optional packing, and one chain of elementwise ops on the stored value, such as
 * rounding to int8. A chain that only moves elements leaves results unchanged.
 */
import { call, dim, i32, index, local } from '../../ir/build.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import type { ValueId } from '../../ir/graph.js'
import { renameLoops } from '../../ir/loop_names.js'
import type { Shape } from '../../ir/shape.js'
import type { RowAccess } from '../../ir/template.js'
import { freeNames, rewrite, substitute, visit } from '../../ir/walk.js'
import { valueAt } from '../graph/edit.js'
import { isPackStep, packingOf } from '../graph/pack.js'
import { equalExprs } from '../space/positions.js'
import { illegal, type Member } from '../space/space.js'
import { type AttentionGroup, placesOf, rowAt, storeOf } from './elements.js'
import { seenAxes } from './seen_axes.js'

export interface AttentionOutput {
  readonly access: RowAccess
  /** Number of rows of a sequence that are written; undefined for as many as there are queries. */
  readonly owned: Expr | undefined
  /** The stored value, an expression of the local `result` and the roles. */
  readonly stored: Expr
  /** Members that make up the output, and the value they end in. */
  readonly members: readonly Member[]
  readonly value: ValueId
}

/** @throws usage `plan.illegal` naming two nodes for a member after the matmuls that does more than move or change one element */
export function outputOf(group: AttentionGroup): AttentionOutput {
  const members = group.around.after(group.context.out)
  const packing = members.findIndex(({ node }) => isPackStep(group.graph, node))
  const made = packing < 0 ? { ...padded(group, members), members } : { ...packed(group, members, packing), members }
  const { layout } = valueAt(group.graph.values, made.value)
  const last = members.at(-1)?.node.name ?? group.context.name
  if (layout !== 'row') throw illegal(group.name, group.context.name, last, `expected a row-major result, got layout ${layout}`)
  return made
}

type Output = Omit<AttentionOutput, 'members'>

const refusal = ({ name, context }: AttentionGroup, members: readonly Member[], reason: string) =>
  illegal(name, context.name, members.at(-1)?.node.name ?? context.name, reason)

const scattered = 'the elements of a result are not contiguous where they are stored'

/** Output of every row of every sequence. */
function padded(group: AttentionGroup, members: readonly Member[]): Output {
  const { slots, context } = group
  const value = resultOf(members) ?? context.out
  const { shape, places, stored } = laidOut(group, members, value)
  const access = rowAt(slots.tensor(value, shape, 'out'), places)
  if (access === undefined) throw refusal(group, members, scattered)
  return { access, owned: undefined, stored, value }
}

/** Output of packed rows: members before the packing lay them out, members after it change the stored value. */
function packed(group: AttentionGroup, members: readonly Member[], packing: number): Output {
  const { graph, slots, context, name } = group
  const merging = members.slice(0, packing)
  const made = resultOf(merging) ?? context.out
  const laid = laidOut(group, merging, made)
  const wanted = ['b', 'i', 'h', 'c'].map(index)
  if (laid.stored.kind !== 'local' || !laid.places.every((place, at) => equalExprs(place, wanted[at])))
    throw illegal(name, context.name, merging.at(-1)?.node.name ?? '', 'a result may be changed after its packing, not before it')
  const pack = members.slice(packing, packing + 1)
  const rows = resultOf(pack) ?? context.out
  const changing = members.slice(packing + 1)
  const value = resultOf(changing) ?? rows
  const stored = changedBy(group, changing, rows, value)
  const [tokens] = valueAt(graph.values, value).shape
  const [, , heads, headDim] = laid.shape
  const starts = packingOf(graph)?.starts
  if (tokens === undefined || heads === undefined || headDim === undefined || starts === undefined) {
    const reason = 'its result is not packed from "batch seq heads headDim"'
    throw illegal(name, pack[0]?.node.name ?? '', context.name, reason)
  }
  const tensor = slots.tensor(value, [tokens, heads, headDim], 'out')
  const start = (b: Expr): Expr => ({ kind: 'load', type: 'i32', tensor: slots.input(starts), indices: [b] })
  const b = index('b')
  const next = call('add', b, i32(1))
  const batch = dim(slots.dim(valueAt(graph.values, starts).shape[0]))
  // The last sequence also owns the rows after its end, so that every row of the packed tensor is defined.
  const end = call('select', call('lt', next, batch), start(next), dim(slots.dim(tokens)))
  return {
    access: { tensor, indices: [call('add', start(b), index('i')), index('h'), i32(0)] },
    owned: call('sub', end, start(b)),
    stored,
    value,
  }
}

const resultOf = (members: readonly Member[]): ValueId | undefined => Object.values(members.at(-1)?.node.outputs ?? {})[0]

/** Indices at which members store an element of the result, and the stored value, as expressions of the roles. */
interface LaidOut {
  readonly shape: Shape
  readonly places: readonly Expr[]
  readonly stored: Expr
}

function laidOut(group: AttentionGroup, members: readonly Member[], value: ValueId): LaidOut {
  const { graph, context, around, slots, roles } = group
  const { shape } = valueAt(graph.values, context.out)
  if (members.length === 0) return { shape, places: roles.result, stored: local('result') }
  const { derived, stmt } = storeOf(group, members, value)
  const read = derived.inputs.find((binding) => around.through(binding.value) === around.through(context.out))
  const product = read?.param
  const output = derived.outputs.find((binding) => binding.value === value)
  const loads: ExprOf<'load'>[] = []
  visit(stmt.value, (expr) => {
    if (expr.kind === 'load' && expr.tensor === product) loads.push(expr)
  })
  const [first] = loads
  if (first === undefined || output === undefined) throw refusal(group, members, 'the stored value does not depend on the result')
  const axes = seenAxes(slots, read?.shape ?? [], { shape, axes: roles.result })
  if (axes === undefined) throw refusal(group, members, "it reads the result along axes that are not the result's")
  if (!loads.every((load) => load.indices.every((place, at) => equalExprs(place, first.indices[at]))))
    throw refusal(group, members, 'the stored value of a result depends on another result')
  const names = new Map(
    first.indices.flatMap((place, at) => (place.kind === 'index' ? [[place.name, axes[at] ?? place] as const] : [])),
  )
  const inRoles = (expr: Expr): Expr => {
    const made = substitute(
      rewrite(renameLoops(expr), (node) => (node.kind === 'load' && node.tensor === product ? local('result') : node)),
      names,
    )
    const left = [...freeNames(expr)].find((name) => !names.has(name))
    if (left !== undefined) throw refusal(group, members, 'results are stored along an axis that they do not have')
    return slots.inKernelNames({ derived, value: made }, made, product)
  }
  const stored = inRoles(stmt.value)
  if (stored.type !== 'f32') throw refusal(group, members, 'attention stores floats and int8, not other integers')
  const places = placesOf(stmt)
  // Ops that only merge adjacent axes of rows leave the addresses of results unchanged.
  const asRead = places.length === first.indices.length && places.every((place, at) => equalExprs(place, first.indices[at]))
  return asRead ? { shape, places: roles.result, stored } : { shape: output.shape, places: places.map(inRoles), stored }
}

/** The stored value of members that read a value element by element: a function of the result and attributes alone. */
function changedBy(group: AttentionGroup, members: readonly Member[], read: ValueId, value: ValueId): Expr {
  const result = local('result')
  if (members.length === 0) return result
  const { around, slots } = group
  const { derived, stmt } = storeOf(group, members, value)
  const places = placesOf(stmt)
  const { inputs } = derived
  const product = inputs.find((binding) => around.through(binding.value) === around.through(read))?.param
  const stored = rewrite(stmt.value, (expr) =>
    expr.kind === 'load' && expr.tensor === product && equalExprs({ ...expr, indices: places }, expr) ? result : expr,
  )
  visit(stored, (expr) => {
    if (expr.kind === 'load' && expr.tensor !== product) {
      const other = inputs.find(({ param }) => param === expr.tensor)?.value
      const reader = members.find(({ node }) => Object.values(node.inputs).some((id) => id === other)) ?? members.at(-1)
      throw illegal(
        group.name,
        group.context.name,
        reader?.node.name ?? '',
        `${reader?.node.name} reads a tensor other than the result`,
      )
    }
    if (!['const', 'attr', 'local', 'call'].includes(expr.kind))
      throw refusal(group, members, 'a stored element may depend only on itself and attributes')
  })
  if (stored.type !== 'f32') throw refusal(group, members, 'attention stores floats and int8, not other integers')
  return slots.inKernelNames({ derived, value: stored }, stored, undefined)
}
