/**
 * Recurrences that carry rows: `foldRow(t, { s: row(k, (c) => 0), y: 0 }, ({ s }, i) => ({ s: row(k, ...), y: sum(k, ...) }))` becomes one
 * statement, whose step consists of the statements that its function emits: scalars, reductions and rows over the elements of the carried rows.
 */
import type { Node } from 'ts-morph'
import { index as indexVar, local } from '../../ir/build.js'
import { longestCarried, mostCarried, type StateField } from '../../ir/constructs/fold_state.js'
import type { Expr } from '../../ir/expr.js'
import { sameExpr } from '../../ir/expr_hash.js'
import { substitute } from '../../ir/walk.js'
import { loop } from '../constructs/rows.js'
import { reject } from '../diagnostics/reject.js'
import { type Lowering, type Place, scalar, type Value, type ValueOf } from '../static/values.js'
import { argumentAt, asScalar } from '../types/scalars.js'
import { floatOf, isRow, madeBy, partOf, type Step, withoutCopies } from './rows_step.js'

/** True if a fold starts with a row. */
export const carriesRows = (start: Value): start is ValueOf<'record'> =>
  start.kind === 'record' && [...start.fields.values()].some(isRow)

interface Given {
  readonly extent: Expr
  readonly start: ValueOf<'record'>
  readonly step: ValueOf<'function'>
  readonly node: Node
  readonly place: Place
  readonly wanted: string
}

/** Lowers a recurrence that carries rows. For `each`, a number becomes the row of its values after every step; a row is that after the last. */
export function foldRows(does: 'last' | 'each', { extent, start, step, node, place, wanted }: Given, lowering: Lowering): Value {
  const [startNode, at] = [argumentAt(node, 1), argumentAt(node, 2)]
  const width = widthOf(start, startNode)
  const column = lowering.unique('c')
  lowering.loops.set(column, width)
  if (width.kind === 'dim') lowering.spans.set(column, width.name)
  const over = (value: Expr, index: string): Expr => substitute(value, new Map([[index, indexVar(column)]]))
  const name = /^\w+$/.test(wanted) ? wanted : 'carried'
  const names = [...start.fields.keys()]
  const starts = [...start.fields.values()].map((value): Expr => {
    if (!isRow(value)) return floatOf(asScalar(value, startNode), 'a field starts with', startNode)
    const of = value.kind === 'pendingRow' ? value.element : value
    const { index, value: element } = loop(width, of, startNode, place, lowering)
    return floatOf(over(element, index), 'the elements of a row that is carried are', startNode)
  })
  const kinds = [...start.fields.values()].map((value): StateField['is'] => (isRow(value) ? 'row' : 'number'))
  const before = names.map((field) => lowering.unique(`before_${field}`))
  const site: Step = { names, kinds, width, node: at, place }
  const carried = carriedIn(site, before)
  const index = lowering.unique(step.node.getParameters()[1]?.getName() ?? 'i')
  if (extent.kind === 'dim') lowering.spans.set(index, extent.name)
  lowering.loops.set(index, extent)
  const given = [carried, scalar(indexVar(index))].slice(0, Math.max(1, step.node.getParameters().length))
  const { made: returned, statements: emitted } = lowering.collect(() => {
    const made = lowering.call(step, given, at, { ...place, level: 'row' })
    return madeBy(made, site, lowering)
  })
  const { after, statements } = withoutCopies(returned, emitted)
  const parts = statements.map((s) => partOf(s, width, over, at))
  const fields = names.map(
    (field, i): StateField => ({
      is: kinds[i] ?? 'number',
      result: lowering.unique(`${name}_${field}`),
      before: before[i] ?? '',
      after: after[i] ?? '',
    }),
  )
  lowering.emit({
    kind: 'foldState',
    fields,
    each: does === 'each',
    length: extent,
    index,
    width,
    column,
    starts,
    step: parts.map(({ part }) => part),
    values: parts.map(({ value }) => value),
  })
  const results = fields.map(({ is, result }, i): [string, Value] => {
    if (is === 'row') return [names[i] ?? '', { kind: 'row', name: result, type: 'f32', length: width }]
    if (does === 'last') return [names[i] ?? '', scalar(local(result, 'f32'))]
    lowering.inOrder.set(result, { made: 'fold', row: result })
    return [names[i] ?? '', { kind: 'row', name: result, type: 'f32', length: extent }]
  })
  return { kind: 'record', fields: new Map(results), node }
}

/** Argument of the step: the carried values, by the names in `before`. */
const carriedIn = ({ names, kinds, width, node }: Step, before: readonly string[]): Value => ({
  kind: 'record',
  fields: new Map(
    names.map((field, i): [string, Value] => {
      const name = before[i] ?? ''
      return [field, kinds[i] === 'row' ? { kind: 'row', name, type: 'f32', length: width } : scalar(local(name, 'f32'))]
    }),
  ),
  node,
})

/** The common length of the carried rows. */
function widthOf({ fields }: ValueOf<'record'>, node: Node): Expr {
  const rows = [...fields].flatMap(([name, value]) => (isRow(value) ? [{ name, length: value.length }] : []))
  const [first] = rows
  if (first === undefined) throw new Error('internal: a fold of numbers carries no row')
  const other = rows.find(({ length }) => !sameExpr(length, first.length))
  if (other !== undefined)
    reject(
      'shape',
      node,
      `rows ${first.name} and ${other.name} have different lengths, rows carried together have one`,
      'make it two folds',
    )
  if (rows.length > mostCarried)
    reject(
      'size',
      node,
      `the fold carries ${rows.length} rows, allowed are ${mostCarried}: they lie in the shared memory of a block`,
      'make it two ops',
    )
  const { length } = first
  const isKnown = length.kind === 'dim' || length.kind === 'const'
  if (!isKnown) reject('shape', node, `the length of row ${first.name} is not a dimension`, 'carry a row over a dimension')
  if (length.kind === 'const' && !(Number(length.value) >= 1 && Number(length.value) <= longestCarried))
    reject(
      'range',
      node,
      `row ${first.name} has ${length.value} elements, a fold carries rows of 1 to ${longestCarried}`,
      'carried rows lie in the shared memory of a block: divide the row, or make a step an op of its own',
    )
  return length
}
