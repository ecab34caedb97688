/** The step of a recurrence that carries rows: the results of its function for each field, and its statements over the elements of the carried rows. */
import type { Node } from 'ts-morph'
import { coerce } from '../../ir/build.js'
import type { StateField, StepPart } from '../../ir/constructs/fold_state.js'
import { teamOf } from '../../ir/constructs/team_call.js'
import type { Expr } from '../../ir/expr.js'
import { sameExpr } from '../../ir/expr_hash.js'
import type { Stmt } from '../../ir/kernel.js'
import { placeRow } from '../constructs/rows.js'
import { reject } from '../diagnostics/reject.js'
import { describe, type Lowering, type Place, scalar, type Value, type ValueOf } from '../static/values.js'
import { asScalar } from '../types/scalars.js'

type RowValue = ValueOf<'row'> | ValueOf<'pendingRow'>

export const isRow = (value: Value): value is RowValue => value.kind === 'row' || value.kind === 'pendingRow'

export const isAt = (at: Expr, index: string): boolean => at.kind === 'index' && at.name === index

export const floatOf = (value: Expr, what: string, node: Node): Expr =>
  value.type === 'bool'
    ? reject('dtype', node, `${what} booleans, a fold that carries a row carries floats`, 'write condition ? 1 : 0')
    : (coerce(value, 'f32') ??
      reject('dtype', node, `${what} ${describe(scalar(value))}, a fold that carries a row carries floats`, 'use toFloat'))

/** The step of a recurrence: its fields, and the length of the carried rows. */
export interface Step {
  readonly names: readonly string[]
  readonly kinds: readonly StateField['is'][]
  readonly width: Expr
  /** The step function. */
  readonly node: Node
  readonly place: Place
}

/** Emits the new value of a field that is a row, and returns its name. */
function rowBy(field: string, value: Value, { width, node, place }: Step, lowering: Lowering): string {
  if (!isRow(value))
    return reject(
      'dtype',
      node,
      `field ${field} starts as a row, the step returns ${describe(value)}`,
      `return a row of it: row(n, (c) => ${field}(c) + ...)`,
    )
  const after = lowering.unique(`after_${field}`)
  if (!sameExpr(value.length, width))
    return reject(
      'shape',
      node,
      `field ${field} starts as a row of another length than the step returns`,
      'a row that is carried has one length',
    )
  // A new statement even for an existing row, so that each field has its own memory.
  const pending: ValueOf<'pendingRow'> =
    value.kind === 'pendingRow' ? value : { kind: 'pendingRow', length: width, element: value, node }
  const placed = placeRow(pending, after, { ...place, level: 'row' }, lowering)
  if (placed.kind !== 'row') throw new Error('internal: a row has no place')
  return placed.name
}

/** Emits the new value of a field that is a number, and returns its name. */
function numberBy(field: string, value: Value, { node }: Step, lowering: Lowering): string {
  const after = lowering.unique(`after_${field}`)
  if (isRow(value))
    return reject(
      'dtype',
      node,
      `field ${field} starts as a number, the step returns a row`,
      `start with a row, { ${field}: row(n, (c) => 0) }, or reduce what the step returns`,
    )
  lowering.emit({
    kind: 'let',
    name: after,
    type: 'f32',
    value: floatOf(asScalar(value, node), `field ${field} is`, node),
  })
  return after
}

/** Emits a step's new values, and returns their names by field. */
export function madeBy(made: Value, step: Step, lowering: Lowering): readonly string[] {
  const { names, kinds, node } = step
  const wanted = names.join(', ')
  if (made.kind !== 'record') return reject('dtype', node, `the step returns ${describe(made)}`, `return ({ ${wanted} })`)
  const extra = [...made.fields.keys()].find((field) => !names.includes(field))
  if (extra !== undefined)
    return reject(
      'unknownIdentifier',
      node,
      `the step returns a field ${extra}, the fold starts without it`,
      `its fields are ${wanted}`,
    )
  return names.map((field, i) => {
    const value = made.fields.get(field)
    if (value === undefined) return reject('dtype', node, `the step returns no field ${field}`, `the fields are ${wanted}`)
    return kinds[i] === 'row' ? rowBy(field, value, step, lowering) : numberBy(field, value, step, lowering)
  })
}

/** Removes copies: a named row that the step returns is carried directly, unless two fields return it. */
export function withoutCopies(
  returned: readonly string[],
  emitted: readonly Stmt[],
): { readonly after: readonly string[]; readonly statements: readonly Stmt[] } {
  const taken = new Set<string>()
  const copies = new Set<string>()
  const after = returned.map((name) => {
    const copy = emitted.find((s) => s.kind === 'row' && s.name === name)
    if (copy?.kind !== 'row' || copy.value.kind !== 'element' || !isAt(copy.value.index, copy.index)) return name
    const { row } = copy.value
    const isNamed = emitted.some((s) => s.kind === 'row' && s.name === row && s.type === 'f32')
    if (!isNamed || returned.includes(row) || taken.has(row)) return name
    taken.add(row)
    copies.add(name)
    return row
  })
  return { after, statements: emitted.filter((s) => !(s.kind === 'row' && copies.has(s.name))) }
}

/** Descriptions of statements that a step cannot contain. */
const words: Partial<Readonly<Record<Stmt['kind'], string>>> = {
  scan: 'a scan',
  merge: 'a reduction by a monoid of its own',
  mergeScan: 'a scan by a monoid of its own',
  foldRow: 'a fold of its own',
  foldState: 'a fold of its own',
  topK: 'a ranking',
  argsort: 'a sorted row',
  counts: 'a histogram',
}

/** Description of a statement's result. */
export const madeOf = (s: Stmt): string => (s.kind === 'team' ? teamOf(s).words : (words[s.kind] ?? 'more than numbers and rows'))

/** A statement of the step over the elements of the carried rows. */
export function partOf(
  s: Stmt,
  width: Expr,
  over: (value: Expr, index: string) => Expr,
  node: Node,
): { readonly part: StepPart; readonly value: Expr } {
  if (s.kind === 'let') return { part: { does: 'let', name: s.name, type: s.type }, value: s.value }
  if (s.kind !== 'reduce' && s.kind !== 'row')
    return reject(
      'row',
      node,
      `the step makes ${madeOf(s)}, a step that carries a row makes sums, extremes and rows`,
      'make it before or after the fold, or in an op of its own',
    )
  if (!sameExpr(s.length, width))
    return reject(
      'shape',
      node,
      `${s.name} runs over another length than the rows that are carried`,
      'the rows and reductions of a step run over the elements of the carried rows; make any other in an op before it',
    )
  const value = over(s.value, s.index)
  return s.kind === 'row'
    ? { part: { does: 'row', name: s.name, type: s.type }, value }
    : { part: { does: 'reduce', name: s.name, type: s.type, monoid: s.monoid }, value }
}
