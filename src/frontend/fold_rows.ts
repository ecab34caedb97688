/**
 * Recurrences that carry rows: `foldRow(t, { s: row(k, (c) => 0), y: 0 }, ({ s }, i) => ({ s: row(k, ...), y: sum(k, ...) }))` becomes one
 * statement, whose step is what its function emits: scalars, reductions and rows over the elements of what is carried.
 */
import type { Node } from 'ts-morph'
import { coerce, index as indexVar, local } from '../ir/build.js'
import {
  type FoldState,
  longestCarried,
  mostCarried,
  type StateField,
  type StepPart,
  stepRows,
} from '../ir/constructs/fold_state.js'
import type { Expr } from '../ir/expr.js'
import type { Kernel, Stmt } from '../ir/kernel.js'
import { sameExpr } from '../ir/keys.js'
import { stmtExprs, substitute, visit } from '../ir/walk.js'
import { reject } from './diagnostics.js'
import { loop, placeRow } from './rows.js'
import { argumentAt, asScalar } from './scalars.js'
import { describe, type Lowering, type Place, scalar, type Value, type ValueOf } from './values.js'

type RowValue = ValueOf<'row'> | ValueOf<'pendingRow'>

const isRow = (value: Value): value is RowValue => value.kind === 'row' || value.kind === 'pendingRow'

/** Whether a fold starts with a row. */
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

/** Lowers a fold that carries rows. Of `each`, numbers are rows of what they are behind every step; rows are those behind the last. */
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
  const carried: Value = {
    kind: 'record',
    fields: new Map(
      names.map((field, i): [string, Value] => {
        const own = before[i] ?? ''
        return [field, kinds[i] === 'row' ? { kind: 'row', name: own, type: 'f32', length: width } : scalar(local(own, 'f32'))]
      }),
    ),
    node: at,
  }
  const index = lowering.unique(step.node.getParameters()[1]?.getName() ?? 'i')
  if (extent.kind === 'dim') lowering.spans.set(index, extent.name)
  lowering.loops.set(index, extent)
  const given = [carried, scalar(indexVar(index))].slice(0, Math.max(1, step.node.getParameters().length))
  const { made: returned, statements: emitted } = lowering.collect(() => {
    const made = lowering.call(step, given, at, { ...place, level: 'row' })
    return madeBy(made, names, kinds, width, at, place, lowering)
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
    return [names[i] ?? '', { kind: 'row', name: result, type: 'f32', length: extent, own: 'fold' }]
  })
  return { kind: 'record', fields: new Map(results), node }
}

const floatOf = (value: Expr, what: string, node: Node): Expr =>
  value.type === 'bool'
    ? reject('dtype', node, `${what} booleans, a fold that carries a row carries floats`, 'write condition ? 1 : 0')
    : (coerce(value, 'f32') ??
      reject('dtype', node, `${what} ${describe(scalar(value))}, a fold that carries a row carries floats`, 'use toFloat'))

/** The length that all rows that are carried have. */
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
  if (!isKnown) reject('shape', node, `the length of row ${first.name} is no dimension`, 'carry a row over a dimension')
  if (length.kind === 'const' && !(Number(length.value) >= 1 && Number(length.value) <= longestCarried))
    reject(
      'range',
      node,
      `row ${first.name} has ${length.value} elements, a fold carries rows of 1 to ${longestCarried}`,
      'what is carried lies in the shared memory of a block: divide the row, or make a step an op of its own',
    )
  return length
}

/** The names of what a step makes of each field. */
function madeBy(
  made: Value,
  names: readonly string[],
  kinds: readonly StateField['is'][],
  width: Expr,
  node: Node,
  place: Place,
  lowering: Lowering,
): readonly string[] {
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
    const after = lowering.unique(`after_${field}`)
    if (kinds[i] === 'row') {
      if (!isRow(value))
        return reject(
          'dtype',
          node,
          `field ${field} starts as a row, the step returns ${describe(value)}`,
          `return a row of it: row(n, (c) => ${field}(c) + ...)`,
        )
      if (!sameExpr(value.length, width))
        return reject(
          'shape',
          node,
          `field ${field} starts as a row of another length than the step returns`,
          'a row that is carried has one length',
        )
      // A statement of its own, even of what is carried or made already, so that each field has memory of its own.
      const pending: ValueOf<'pendingRow'> =
        value.kind === 'pendingRow' ? value : { kind: 'pendingRow', length: width, element: value, node }
      const placed = placeRow(pending, after, { ...place, level: 'row' }, lowering)
      if (placed.kind !== 'row') throw new Error('internal: a row has no place')
      return placed.name
    }
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
  })
}

/** A row that the author named and returns is what is carried, instead of a copy of it, unless two fields are that row. */
function withoutCopies(
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

const words: Partial<Readonly<Record<Stmt['kind'], string>>> = {
  scan: 'a scan',
  merge: 'a reduction by a monoid of its own',
  mergeScan: 'a scan by a monoid of its own',
  foldRow: 'a fold of its own',
  foldState: 'a fold of its own',
  threshold: 'a threshold',
  topK: 'a ranking',
  argsort: 'a sorted row',
}

/** A statement of the step over the elements of what is carried. */
function partOf(
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
      `the step makes ${words[s.kind] ?? 'more than numbers and rows'}, a step that carries a row makes sums, extremes and rows`,
      'make it before the fold or behind it, or in an op of its own',
    )
  if (!sameExpr(s.length, width))
    return reject(
      'shape',
      node,
      `${s.name} runs over another length than the rows that are carried`,
      'the rows and reductions of a step run over the elements of what is carried; what is otherwise is made in an op before it',
    )
  const value = over(s.value, s.index)
  return s.kind === 'row'
    ? { part: { does: 'row', name: s.name, type: s.type }, value }
    : { part: { does: 'reduce', name: s.name, type: s.type, monoid: s.monoid }, value }
}

/** Refuses what cannot be read in steps, and what cannot be done with what they leave. */
export function checkSteps({ body }: Pick<Kernel, 'body'>, node: Node): void {
  const folds = body.filter((s): s is FoldState => s.kind === 'foldState')
  if (folds.length === 0) return
  const carried = folds.reduce((sum, { fields }) => sum + fields.filter(({ is }) => is === 'row').length, 0)
  if (carried > mostCarried)
    reject('size', node, `the folds of the op carry ${carried} rows, allowed are ${mostCarried} together`, 'make it two ops')
  const other = body.find(({ kind }) => kind === 'argsort' || kind === 'topK' || kind === 'threshold' || kind === 'foldRow')
  if (other !== undefined)
    reject(
      'row',
      node,
      `the op carries a row from step to step, as the lanes of a warp do, and makes ${words[other.kind]} besides`,
      'make it two ops',
    )
  checkRowsRead(body, folds, node)
  checkStepRows(body, node)
}

/** Rows in front of a fold are computed where its steps read them, which those that combine elements cannot be. */
function checkRowsRead(body: readonly Stmt[], folds: readonly FoldState[], node: Node): void {
  const plain = new Set<string>()
  const readsOther = (s: Stmt): string | undefined => {
    let found: string | undefined
    const own =
      s.kind === 'foldState' ? new Set([...s.fields.map(({ before }) => before), ...s.step.map(({ name }) => name)]) : undefined
    for (const expr of stmtExprs(s))
      visit(expr, (e) => {
        if (e.kind === 'element' && !plain.has(e.row) && own?.has(e.row) !== true) found = e.row
      })
    return found
  }
  for (const s of body) {
    if (s.kind === 'row' && readsOther(s) === undefined) plain.add(s.name)
    const read = folds.some((fold) => fold === s) ? readsOther(s) : undefined
    if (read !== undefined)
      reject(
        'row',
        node,
        `a fold that carries a row reads ${read}, a row that combines elements or is made of one that does`,
        'its steps read tensors, scalars, and rows of what tensors hold: make the other row in an op of its own',
      )
  }
}

/** Numbers of every step are stored when they are made, and lie nowhere else. */
function checkStepRows(body: readonly Stmt[], node: Node): void {
  const rows = stepRows(body)
  for (const s of body) {
    const isStored = s.kind === 'storeRow' && s.when === undefined && s.value.kind === 'element' && isAt(s.value.index, s.index)
    for (const expr of stmtExprs(s))
      visit(expr, (e) => {
        if (e.kind !== 'element' || !rows.has(e.row) || (isStored && e === expr)) return
        reject(
          'row',
          node,
          `${e.row} has a number for each step of a fold that carries a row, which is stored with the step and computed with nowhere else`,
          'return it as an output as it is, row(t, (i) => all.y(i)); what is computed of it belongs into the step, or into an op behind',
        )
      })
  }
}

const isAt = (at: Expr, index: string): boolean => at.kind === 'index' && at.name === index
