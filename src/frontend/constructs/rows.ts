/**
 * Row constructs: rows, reductions, scans, histograms and the loops over them. At row level they become statements of the kernel;
 * inside an element, reductions become serial ones.
 */
import type { Node } from 'ts-morph'
import { mostBins } from '../../ir/constructs/counts.js'
import { isShort } from '../../ir/constructs/row.js'
import type { ScalarType } from '../../ir/dtype.js'
import type { Expr } from '../../ir/expr.js'
import { type MonoidName, monoid } from '../../ir/monoids.js'
import { quote, reject } from '../diagnostics/reject.js'
import { describe, type Lowering, type Place, scalar, type Value, type ValueOf } from '../static/values.js'
import { asInteger } from '../types/conditions.js'
import { argumentAt, asIndex, asScalar, mismatchHints, nameHistogram } from '../types/scalars.js'
import { followOrder } from './in_order.js'

/** Evaluates `of` at a fresh loop index: the element of a row, a reduction or an output. */
export function loop(
  length: Expr,
  of: Value,
  node: Node,
  place: Place,
  lowering: Lowering,
): { readonly index: string; readonly value: Expr } {
  const parameters = of.kind === 'function' ? of.node.getParameters() : undefined
  const index = lowering.unique(parameters?.[0]?.getName() ?? 'i')
  if (length.kind === 'dim') lowering.spans.set(index, length.name)
  lowering.loops.set(index, length)
  if (place.level === 'element') lowering.inner.add(index)
  const args: Value[] = parameters?.length === 0 ? [] : [scalar({ kind: 'index', type: 'i32', name: index })]
  const { scope, level, guards = [] } = place
  const own: Place = { scope, level: 'element', guards, ...(level === 'row' ? { loop: { index, length } } : {}) }
  return { index, value: asScalar(lowering.call(of, args, node, own), node) }
}

/** Refuses an argument of a row construct that has no elements. */
export function expectRow(construct: string, of: Value, at: Node, hint: string): void {
  if (of.kind !== 'scalar' && of.kind !== 'record' && of.kind !== 'histogram') return
  const instead = of.kind === 'histogram' ? nameHistogram : hint
  reject('row', at, `${construct} takes a row or a function of an index, ${quote(at)} is ${describe(of)}`, instead)
}

/** The two arguments of every row construct. */
export function lengthAndElement(name: string, args: readonly Value[], node: Node): { length: Expr; of: Value; at: Node } {
  const [length, of] = args
  if (length === undefined || of === undefined || args.length !== 2) {
    return reject('arity', node, `${name} takes 2 arguments, ${args.length} given`, `write ${name}(n, (c) => x(m, c))`)
  }
  const at = argumentAt(node, 1)
  const pair = name === 'max' || name === 'min'
  const isValue = of.kind === 'scalar' || of.kind === 'record'
  expectRow(name, of, at, pair && isValue ? `the ${name} of two values is ${name}imum(a, b)` : `write ${name}(n, (c) => x(m, c))`)
  return { length: asIndex(length, argumentAt(node, 0), `length of ${name}:`), of, at }
}

/** Type of combined elements, which must be numbers. */
function combinedType(construct: string, does: string, name: MonoidName, { type }: Expr, at: Node): ScalarType {
  const { element: accepted, result } = monoid(name)
  if (accepted.includes(type)) return result(type)
  return reject('dtype', at, `${construct} ${does} numbers, its element is a boolean`, mismatchHints['bool to number'])
}

/** A reduction: a statement at row level, or a fold inside an element. `wanted` is the author's name for it, if any. */
export function reduction(
  name: MonoidName,
  args: readonly Value[],
  node: Node,
  place: Place,
  lowering: Lowering,
  wanted?: string,
): Value {
  const { length, of, at } = lengthAndElement(name, args, node)
  if (place.level === 'branch') {
    reject(
      'branch',
      node,
      `${name} is in a branch, but a row reduction always runs`,
      `make it a const before the conditional: const t = ${quote(node)}`,
    )
  }
  const result = wanted === undefined || place.level !== 'row' ? undefined : lowering.unique(wanted)
  const { index, value } = loop(length, of, at, place, lowering)
  const type = combinedType(name, 'reduces', name, value, at)
  if (place.level === 'element') return scalar({ kind: 'fold', type, monoid: name, length, index, value })
  const local = result ?? lowering.unique(name, 'derived')
  lowering.emit({ kind: 'reduce', name: local, type, monoid: name, length, index, value })
  return scalar({ kind: 'local', type, name: local })
}

/** Refuses a construct that defines a row value outside of row level. */
export function expectRowLevel(what: string, node: Node, { level }: Place): void {
  if (level === 'row') return
  reject(
    'row',
    node,
    `${what} cannot be made inside an element or a branch`,
    'make it a const at row level, before the row that uses it',
  )
}

/** A scan: a row value of the kernel. `wanted` is the author's name for it, if any. */
export function scan(
  name: MonoidName,
  args: readonly Value[],
  node: Node,
  place: Place,
  lowering: Lowering,
  wanted?: string,
): Value {
  const { length, of, at } = lengthAndElement('scan', args, node)
  expectRowLevel('a scan', node, place)
  const row = wanted === undefined ? lowering.unique('scan', 'derived') : lowering.unique(wanted)
  const { index, value } = loop(length, of, at, place, lowering)
  const type = combinedType('scan', 'combines', name, value, at)
  lowering.emit({ kind: 'scan', name: row, type, monoid: name, length, index, value })
  followOrder(row, value, lowering)
  return { kind: 'row', name: row, type, length }
}

/** A histogram, pending until it gets a name or an output. */
export function histogram(args: readonly Value[], node: Node, place: Place): Value {
  const [bins, length, of] = args
  const example = 'write histogram(bins, n, (c) => toInt(x(m, c)))'
  if (bins === undefined || length === undefined || of === undefined || args.length !== 3)
    return reject('arity', node, `histogram takes 3 arguments, ${args.length} given`, example)
  expectRowLevel('a histogram', node, place)
  const at = argumentAt(node, 2)
  expectRow('histogram', of, at, example)
  return {
    kind: 'histogram',
    bins: asIndex(bins, argumentAt(node, 0), 'bins of histogram:'),
    length: asIndex(length, argumentAt(node, 1), 'length of histogram:'),
    element: of,
    node: at,
  }
}

/** Emits a histogram as a named row of counts. */
export function placeHistogram(counted: ValueOf<'histogram'>, wanted: string, place: Place, lowering: Lowering): Value {
  const { bins, length, element, node } = counted
  expectRowLevel('a histogram', node, place)
  if (bins.kind !== 'dim' && bins.kind !== 'const')
    return reject(
      'shape',
      node,
      `the bins of histogram ${wanted} are neither a dimension nor a number`,
      'count in as many bins as there may be',
    )
  const name = lowering.unique(wanted)
  const { index, value } = loop(length, element, node, place, lowering)
  if (value.type !== 'i32')
    return reject('dtype', node, `a histogram counts integers, its element is ${describe(scalar(value))}`, 'use toInt')
  lowering.emit({ kind: 'counts', name, bins, most: mostBins, length, index, value })
  return { kind: 'row', name, type: 'i32', length: bins }
}

/** Emits a pending row as a named row of the kernel. */
export function placeRow(row: ValueOf<'pendingRow'>, wanted: string, place: Place, lowering: Lowering): Value {
  expectRowLevel('a row', row.node, place)
  const name = lowering.unique(wanted)
  const { index, value } = loop(row.length, row.element, row.node, place, lowering)
  const stored = value.type === 'bool' ? asInteger(value) : value
  lowering.emit({ kind: 'row', name, type: stored.type, length: row.length, index, value: stored })
  // Short rows are stored, so they may be read anywhere.
  if (!isShort(row.length)) followOrder(name, value, lowering)
  return { kind: 'row', name, type: value.type, length: row.length }
}
