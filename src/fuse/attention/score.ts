/**
 * Derives the score from the ops between the two matmuls of attention, independent of their form and names. The members are merged into one row
 * program, as in any group, and the softmax is recognised in that program.
 */
import { index, local } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import type { ValueId } from '../../ir/graph.js'
import type { SourceSpan } from '../../ir/kernel.js'
import { renameLoops } from '../../ir/loop_names.js'
import type { Shape } from '../../ir/shape.js'
import { freeNames, rewrite, substitute, visit } from '../../ir/walk.js'
import { valueAt } from '../graph/edit.js'
import { deriveKernel } from '../rows/derive.js'
import { innerViews } from '../space/members.js'
import { equalExprs } from '../space/positions.js'
import { illegal, type Member } from '../space/space.js'
import type { AttentionGroup } from './elements.js'
import { type Masked, takeMasks } from './masks.js'
import { seenAxes } from './seen_axes.js'
import { NoSoftmax, type Softmax, softmaxOf } from './softmax.js'

export interface AttentionScore extends Masked {
  readonly denominator: Expr
  readonly members: readonly Member[]
  readonly source: SourceSpan
  /** Values of rows that are needed outside of the group. */
  readonly rows: readonly ScoreRow[]
}

/** A value of a row of the softmax: where it is stored, in roles, and its expression of `total`, `top` and roles. */
export interface ScoreRow {
  readonly id: ValueId
  readonly shape: Shape
  readonly indices: readonly Expr[]
  readonly value: Expr
}

/** @throws usage `plan.illegal` naming two nodes where the ops between the matmuls are not a softmax, or a score depends on other pairs */
export function scoreOf(group: AttentionGroup): AttentionScore {
  const { graph, name, scores, context, layouts, around, slots, roles } = group
  const needed = rowsNeeded(group)
  const members = around.before(roles.probabilities.value, ...needed)
  const [first] = members
  const last = members.at(-1)
  if (first === undefined || last === undefined) throw illegal(name, scores.name, context.name, noMembersBetween)
  const made = around.through(roles.probabilities.value)
  const derived = deriveKernel(graph, name, members, innerViews(graph, members), new Set([made, ...needed]), layouts)
  const refuse = (reason: string) => illegal(name, scores.name, last.node.name, reason)
  const product = derived.inputs.find(({ value }) => around.through(value) === around.through(scores.out))?.param
  if (product === undefined) throw refuse('it does not read the scores')
  const softmax = softmaxIn(derived.kernel, (reason) => illegal(name, scores.name, context.name, reason))
  const { places } = softmax
  const seen = derived.inputs.find(({ param }) => param === product)?.shape ?? []
  const { shape } = valueAt(graph.values, scores.out)
  const axes = seenAxes(slots, seen, { shape, axes: roles.scores })
  const names = places.map((place) => (place.kind === 'index' ? place.name : undefined))
  if (axes === undefined || places.length !== axes.length || names.includes(undefined))
    throw refuse('the softmax reads the scores along axes that are not theirs')
  if (!equalExprs(axes[names.indexOf(softmax.loop)], index('j')))
    throw refuse('the softmax runs along another axis than the one the second matmul sums over')
  const renamed = new Map(names.map((each, at) => [each ?? '', axes[at] ?? index('j')]))
  const raw = local('raw')
  const inRoles = (expr: Expr): Expr => {
    const replaced = rewrite(expr, (node) => {
      if (node.kind !== 'load' || node.tensor !== product) return node
      if (node.indices.length === places.length && node.indices.every((place, at) => equalExprs(place, places[at]))) return raw
      if (isTransposed(softmax.score, product, places))
        throw refuse(
          'queries and keys are transposed between the two matmuls: let the first one store its axes as the second reads them',
        )
      throw refuse('a score depends on another pair of query and key')
    })
    return slots.inKernelNames({ derived, value: replaced }, substitute(renameLoops(replaced), renamed), product)
  }
  const denominator = inRoles(softmax.denominator)
  if (freeNames(denominator).has('raw') || freeNames(denominator).has('j'))
    throw refuse('it divides by a value that differs by key')
  const rows = softmax.rows.map(({ tensor, indices, value }): ScoreRow => {
    const output = derived.outputs.find(({ param }) => param === tensor)
    if (output === undefined) throw new Error(`internal: no output ${tensor}`)
    const row = { id: output.value, shape: output.shape, indices: indices.map(inRoles), value: inRoles(value) }
    if ([...row.indices, row.value].some((expr) => freeNames(expr).has('raw') || freeNames(expr).has('j')))
      throw refuse('a value of a row that is needed outside differs by key')
    return row
  })
  return { ...takeMasks(inRoles(softmax.score)), denominator, members, source: last.kernel.source, rows }
}

/** Values computed from the scores before the second matmul that are needed outside of the group, with one element per row of scores. */
function rowsNeeded({ graph, scores, context, around, roles }: AttentionGroup): readonly ValueId[] {
  const behind = new Set(around.after(context.out))
  const inside = around.after(scores.out).filter((member) => !behind.has(member))
  const wanted = volume(valueAt(graph.values, scores.out).shape)
  return inside
    .flatMap(({ node }) => Object.values(node.outputs))
    .filter((id) => around.isNeeded(id, [scores, context]))
    .filter((id) => volume([...valueAt(graph.values, id).shape, roles.keys]) === wanted)
}

/** Number of elements of a shape, in one form. */
const volume = (shape: Shape): string =>
  [shape.reduce((product, { factor }) => product * factor, 1), ...shape.flatMap(({ dims }) => dims).toSorted()].join(' ')

/** True if every score is read with its axes transposed. */
function isTransposed(score: Expr, product: string, places: readonly Expr[]): boolean {
  let transposed = true
  visit(score, (expr) => {
    if (expr.kind !== 'load' || expr.tensor !== product) return
    const isOwn = expr.indices.every((at, axis) => equalExprs(at, places[axis]))
    transposed &&= !isOwn && places.every((place) => expr.indices.some((at) => equalExprs(at, place)))
  })
  return transposed
}

const noMembersBetween = 'there is no softmax between the two matmuls'

function softmaxIn(kernel: Parameters<typeof softmaxOf>[0], refuse: (reason: string) => Error): Softmax {
  try {
    return softmaxOf(kernel)
  } catch (error) {
    if (error instanceof NoSoftmax) throw refuse(`between the two matmuls: ${error.message}`)
    throw error
  }
}
