/**
 * Recurrences in a body: `foldRow(n, { h: 0 }, ({ h }, t) => ({ ... }))` becomes one statement whose fields are rows; `fold` also selects
 * the last element of each.
 */
import { Node } from 'ts-morph'
import { call, coerce, i32, local } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import { hashOf } from '../../ir/expr_hash.js'
import { substitute } from '../../ir/walk.js'
import { expectRowLevel } from '../constructs/rows.js'
import { quote, reject } from '../diagnostics/reject.js'
import { follow } from '../static/literals.js'
import { readBrand } from '../static/resolve.js'
import { describe, type Lowering, type Place, scalar, type Value, type ValueOf } from '../static/values.js'
import { argumentAt, asIndex, asScalar } from '../types/scalars.js'
import { carriesRows, foldRows } from './rows.js'
import { closeStep, lastOf } from './step.js'

const example = 'write fold(n, { h: 0 }, ({ h }, t) => ({ h: ... }))'

interface Field {
  readonly name: string
  readonly type: 'f32' | 'i32'
  readonly start: Expr
}

/** True if a field starts with `int(...)`. */
function saysInteger({ node }: ValueOf<'record'>, name: string): boolean {
  const property = Node.isObjectLiteralExpression(node) ? node.getProperty(name) : undefined
  const value = Node.isPropertyAssignment(property) ? property.getInitializer() : undefined
  const written = value === undefined ? undefined : follow(value)
  return Node.isCallExpression(written) && readBrand(written.getExpression())?.kind === 'int'
}

/** Initial values of the carried fields. A number is a float, unless it is written `int(0)`. */
function startOf(start: Value, node: Node): readonly Field[] {
  if (start.kind !== 'record') return reject('dtype', node, `a fold starts with ${describe(start)}`, example)
  const fields = [...start.fields].map(([name, value]): Field => {
    const given = asScalar(value, node)
    if (given.type === 'bool')
      return reject('dtype', node, `field ${name} starts with a boolean`, 'carry an integer: condition ? int(1) : int(0)')
    const expr = given.kind === 'const' && !saysInteger(start, name) ? (coerce(given, 'f32') ?? given) : given
    return { name, type: expr.type === 'i32' ? 'i32' : 'f32', start: expr }
  })
  if (fields.length === 0) reject('signature', node, 'a fold carries at least one field', example)
  return fields
}

/** Fields of a step's result: exactly the initial fields. */
function returned(made: Value, fields: readonly Field[], node: Node): readonly Expr[] {
  const wanted = fields.map(({ name }) => name).join(', ')
  if (made.kind !== 'record') return reject('dtype', node, `the step returns ${describe(made)}`, `return ({ ${wanted} })`)
  const extra = [...made.fields.keys()].find((name) => !fields.some((field) => field.name === name))
  if (extra !== undefined)
    return reject(
      'unknownIdentifier',
      node,
      `the step returns a field ${extra}, the fold starts without it`,
      `its fields are ${wanted}`,
    )
  return fields.map(({ name, type }) => {
    const given = made.fields.get(name)
    if (given === undefined) return reject('dtype', node, `the step returns no field ${name}`, `the fields are ${wanted}`)
    const expr = asScalar(given, node)
    const hint = type === 'i32' ? 'use toInt, or start with a float' : 'write condition ? 1 : 0'
    const what = describe(scalar(expr))
    const kind = type === 'i32' ? 'an integer' : 'a float'
    return coerce(expr, type) ?? reject('dtype', node, `field ${name} starts as ${kind}, the step returns ${what}`, hint)
  })
}

/** Lowers a call of `fold` (`last`) or `foldRow` (`each`). `wanted` is the author's name for the result, if any. */
export function foldCall(
  does: 'last' | 'each',
  args: readonly Value[],
  node: Node,
  place: Place,
  lowering: Lowering,
  wanted = '',
): Value {
  const [length, start, step] = args
  if (length === undefined || start === undefined || step?.kind !== 'function' || args.length !== 3)
    return reject('arity', node, 'a fold takes a length, what it starts with, and a step', example)
  if (place.level === 'element')
    reject(
      'row',
      node,
      'a fold cannot be made inside an element',
      'take the index of the element with those of the rows, (m, c) => ..., so that each has a fold of its own',
    )
  expectRowLevel('a fold', node, place)
  const extent = asIndex(length, argumentAt(node, 0), 'length of a fold:')
  if (carriesRows(start)) return foldRows(does, { extent, start, step, node, place, wanted }, lowering)
  const fields = startOf(start, argumentAt(node, 1))
  const at = argumentAt(node, 2)
  const name = /^\w+$/.test(wanted) ? wanted : 'carried'
  const before = fields.map((field) => lowering.unique(`before_${field.name}`))
  const carried: Value = {
    kind: 'record',
    fields: new Map(fields.map((field, i) => [field.name, scalar(local(before[i] ?? '', field.type))])),
    node: at,
  }
  const index = lowering.unique(step.node.getParameters()[1]?.getName() ?? 'i')
  if (extent.kind === 'dim') lowering.spans.set(index, extent.name)
  lowering.loops.set(index, extent)
  const given = [carried, scalar({ kind: 'index', type: 'i32', name: index })].slice(
    0,
    Math.max(1, step.node.getParameters().length),
  )
  const made = returned(lowering.call(step, given, at, { ...place, level: 'element' }), fields, at)
  const twin = sameFold(fields, made, { before, index, length: extent }, lowering)
  if (twin.made !== undefined) return results(does, fields, twin.made, node, lowering)
  const { next, taken, names: element } = closeStep(made, new Set(before), at, lowering)
  const starts = fields.map((field) => {
    if (field.start.kind === 'const' || field.start.kind === 'local') return field.start
    const first = lowering.unique(`${name}_${field.name}_start`)
    lowering.emit({ kind: 'let', name: first, type: field.type, value: field.start })
    return local(first, field.type)
  })
  const names = fields.map((field) => lowering.unique(`${name}_${field.name}`))
  const types = taken.map(({ type }): 'f32' | 'i32' => (type === 'i32' ? 'i32' : 'f32'))
  const fold = { fields: fields.map((field) => ({ name: field.name, type: field.type })), taken: types, before, element, next }
  lowering.emit({ kind: 'foldRow', names, fold, starts, length: extent, index, values: taken })
  const rows = { names, starts, length: extent }
  twin.remember(rows)
  return results(does, fields, rows, node, lowering)
}

/** The rows of a fold. */
interface Rows {
  readonly names: readonly string[]
  readonly starts: readonly Expr[]
  readonly length: Expr
}

/** The recurrences of each body, by structural hash. */
const known = new WeakMap<Lowering, Map<string, Rows>>()

/** Looks up the rows of an equal recurrence, so that `fold` and `foldRow` of the same step share one statement. */
function sameFold(
  fields: readonly Field[],
  made: readonly Expr[],
  { before, index, length }: { readonly before: readonly string[]; readonly index: string; readonly length: Expr },
  lowering: Lowering,
) {
  const renamed = new Map<string, Expr>([
    ...before.map((name, i): [string, Expr] => [name, local(`(before ${i})`, fields[i]?.type)]),
    [index, { kind: 'index', type: 'i32', name: '(index)' }],
  ])
  const parts = [length, ...fields.map(({ start }) => start), ...made.map((expr) => substitute(expr, renamed))]
  const key = [...fields.map(({ name, type }) => `${name}: ${type}`), ...parts.map(hashOf)].join('; ')
  const folds = known.get(lowering) ?? new Map<string, Rows>()
  known.set(lowering, folds)
  return { made: folds.get(key), remember: (rows: Rows) => void folds.set(key, rows) }
}

/** Value of a recurrence in the body: a row, or its last element, for each field. */
function results(does: 'last' | 'each', fields: readonly Field[], rows: Rows, node: Node, lowering: Lowering): Value {
  const { names, starts, length } = rows
  const value = ({ type }: Field, i: number): Value => {
    const row = names[i] ?? ''
    lowering.inOrder.set(row, { made: 'fold', row })
    if (does === 'each') return { kind: 'row', name: row, type, length }
    return scalar(lastElement(row, type, starts[i] ?? i32(0), length, lowering))
  }
  return { kind: 'record', fields: new Map(fields.map((field, i): [string, Value] => [field.name, value(field, i)])), node }
}

/** The last element of a row that is read in loops only; the initial value if the row is empty. */
function lastElement(row: string, type: 'f32' | 'i32', start: Expr, length: Expr, lowering: Lowering): Expr {
  const index = lowering.unique('i')
  const here: Expr = { kind: 'index', type: 'i32', name: index }
  const isLast = call('eq', here, call('sub', length, i32(1)))
  const { monoid, value } = lastOf({ kind: 'element', type, row, index: here }, isLast)
  const name = lowering.unique(`${row}_last`)
  lowering.emit({ kind: 'reduce', name, type, monoid, length, index, value })
  return call('select', call('gt', length, i32(0)), local(name, type), start)
}

/** Lowers `int(0)` in a body to the integer. */
export function integer(args: readonly Value[], node: Node): Value {
  const [given] = args
  const expr = given === undefined ? undefined : asScalar(given, node)
  return expr?.kind === 'const' && expr.type === 'i32'
    ? scalar(expr)
    : reject(
        'dtype',
        node,
        `${quote(node)} is not an integer known at compile time`,
        'write int(0); floats become integers by toInt',
      )
}
