/**
 * Windows of few places, written out. Elements reduce neighbourhoods of their place; where a window has few places, its loops are written out, and a
 * point stores several places of one axis, whose windows overlap: each load is made once for all of them (several_places.ts). Window lengths
 * are numbers of the body, or dimensions that facts state: then the launcher takes this form where a call has these dimensions.
 *
 *     y[c, i, j] = sum(u < 3: sum(v < 3: x[c, i + u, j + v] * f[c, u, v]))
 *
 * Windows whose places a body writes out by itself are the same, if places share loads. Loads beside each other along the last axis have a form in
 * spans, too (spans.ts), for rows that are whole chunks.
 */
import { dim as dimVar, index as indexVar } from '../../ir/build.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import { getOwn } from '../../ir/get_own.js'
import type { Instance } from '../../ir/instance.js'
import type { Kernel, Stmt, StmtOf } from '../../ir/kernel.js'
import { isUpdating } from '../../ir/update.js'
import { visit } from '../../ir/walk.js'
import { elementsOf, storedValues } from '../normalise/merge_axes.js'
import { freshName } from '../normalise/normal.js'
import { loadsOf, substituteIndex, usesIndex } from '../normalise/rewrite.js'
import { takenNames } from '../normalise/taken_names.js'
import { knownOfAxes, withoutClamps } from './inequalities.js'
import { type Inside, insideOf } from './inside.js'
import { hasNeighbours } from './neighbours.js'
import { severalPlaces } from './several_places.js'
import { mostLoads, simplified, stepsOf, writtenOut } from './written_out.js'

/** A kernel with its windows written out. */
export interface Windows {
  readonly instance: Instance
  /** Dimensions that it takes as the numbers that facts state. */
  readonly stated: Readonly<Record<string, number>>
  /** The same for points whose windows lie inside of the tensor along all axes but the last. */
  readonly inside: Inside | undefined
  /** The same with loads along rows in spans, if some lie beside the place of an element. */
  readonly spans: Instance | undefined
}

type Store = StmtOf<'store'>

/** Most steps of a reduction of shared loads that is written out: with more, a thread would keep too many of them. */
const mostSharedSteps = 8

/** The kernel with its windows written out; undefined if it has none, or none that are few. */
export function windowsWrittenOut(instance: Instance): Windows | undefined {
  const { kernel: given, dims } = instance
  if (isUpdating(given) || given.computed !== undefined || given.rows.some(({ also, times }) => (also ?? times) !== undefined))
    return undefined
  const kernel = elementsOf({ ...given, body: given.body.map(asElement) })
  const stores = kernel?.body.filter((s): s is Store => s.kind === 'store') ?? []
  const last = kernel?.rows.at(-1)
  if (kernel === undefined || last === undefined || kernel.rows.length < 2 || stores.length === 0) return undefined
  if (!stores.every((s) => endsAlong(s, last.index))) return undefined
  const stated: Record<string, number> = {}
  const numberOf = (length: Expr): number | undefined => {
    if (length.kind === 'const') return Number(length.value)
    if (length.kind !== 'dim') return undefined
    const known = getOwn(dims, length.name)
    const equal = given.facts?.dims?.[length.name]?.equal
    if (known !== undefined || typeof equal !== 'number') return known
    return equal
  }
  const values = storedValues(kernel)
  const windows = values.flatMap((value) => windowsIn(value, kernel, numberOf))
  if (windows.length === 0 && !values.some((value) => hasNeighbours(value, kernel))) return undefined
  for (const { length } of windows)
    if (length.kind === 'dim' && !(length.name in dims)) stated[length.name] = numberOf(length) ?? 0
  const fixed = { ...dims, ...stated }
  const known = knownOfAxes(kernel, fixed)
  const made = values.map((value) => withoutClamps(simplified(writtenOut(value, numberOf), last), known))
  if (loadsOf(made).length > mostLoads) return undefined
  const along = made.some((value) => hasNeighbours(value, { rows: [last] }))
  const alone = { kernel: inRow(kernel, stores, made), dims: fixed }
  const spans = along ? { ...instance, ...(severalPlaces(kernel, stores, made, last, fixed, 'in spans') ?? alone) } : undefined
  const several = severalPlaces(kernel, stores, made, last, fixed, windows.length === 0 ? 'shared' : 'any')
  if (several === undefined && spans === undefined && windows.length === 0) return undefined
  const whole = several ?? alone
  const axes = new Set(whole.kernel.rows.map(({ index }) => index))
  return { instance: { ...instance, ...whole }, stated, inside: insideOf(whole.kernel, axes), spans }
}

/** A reduction as the value of an element. */
function asElement(s: Stmt): Stmt {
  if (s.kind !== 'reduce') return s
  const { name, type, monoid, length, index, value } = s
  return { kind: 'let', name, type, value: { kind: 'fold', type, monoid, length, index, value } }
}

/** True if the last index of a store is an axis, and no other index depends on it. */
const endsAlong = ({ indices }: Store, axis: string): boolean =>
  indices.at(-1)?.kind === 'index' && indices.every((at, i) => usesIndex(at, axis) === (i === indices.length - 1))

/**
 * Reductions over few places around that of an element: an index of a load depends on the place and on a step. Or reductions of few steps whose
 * loads are those of many elements, such as a distance of points: a thread that computes one element would make them all for it.
 */
function windowsIn(value: Expr, { rows }: Kernel, numberOf: (length: Expr) => number | undefined): readonly ExprOf<'fold'>[] {
  const found: ExprOf<'fold'>[] = []
  visit(value, (node) => {
    const steps = node.kind === 'fold' ? stepsOf(node, numberOf) : undefined
    if (node.kind !== 'fold' || steps === undefined) return
    const isAround = (at: Expr): boolean => usesIndex(at, node.index) && rows.some(({ index }) => usesIndex(at, index))
    const loads = loadsOf([node.value])
    const isShared =
      steps <= mostSharedSteps && loads.length > 1 && loads.every((load) => rows.some(({ index }) => !usesIndex(load, index)))
    if (isShared || loads.some(({ indices }) => indices.some(isAround))) found.push(node)
  })
  return found
}

/** The kernel with elements along rows, which threads load in chunks where they can. */
function inRow(kernel: Kernel, stores: readonly Store[], values: readonly Expr[]): Kernel {
  const last = kernel.rows.at(-1)
  const taken = takenNames(kernel)
  const body = stores.map((s, i): Stmt => {
    const index = freshName(last?.index ?? '', taken)
    const value = substituteIndex(values[i] ?? s.value, last?.index ?? '', indexVar(index))
    return { kind: 'storeRow', tensor: s.tensor, rows: s.indices.slice(0, -1), length: dimVar(last?.dim ?? ''), index, value }
  })
  return { ...kernel, rows: kernel.rows.slice(0, -1), body, storedPlaces: 1 }
}
