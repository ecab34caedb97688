/**
 * Rows computed in order: scans by a user monoid, recurrences, and rows computed from either. Other rows are recomputed by each reader; an element of
 * these is available only in the loop that computes them, at the loop's index.
 */
import { Node } from 'ts-morph'
import type { Expr } from '../../ir/expr.js'
import { sameExpr } from '../../ir/expr_hash.js'
import { visit } from '../../ir/walk.js'
import { quote, reject } from '../diagnostics/reject.js'
import type { InOrder, Lowering, ValueOf } from '../static/values.js'
import { argumentAt } from '../types/scalars.js'

/** The first row computed in order that a value reads; undefined if there is none. */
export function inOrderIn(value: Expr, { inOrder }: Lowering): InOrder | undefined {
  let found: InOrder | undefined
  visit(value, (node) => {
    if (node.kind === 'element') found ??= inOrder.get(node.row)
  })
  return found
}

/** Records that a row is computed from a row computed in order, if it is. */
export function followOrder(row: string, value: Expr, lowering: Lowering): void {
  const found = inOrderIn(value, lowering)
  if (found !== undefined) lowering.inOrder.set(row, found)
}

/** Description of a row computed in order, for messages. */
const made = ({ made }: InOrder): string => (made === 'scan' ? 'a scan by a monoid of its own' : 'a row that a fold makes')

const derived = (name: string, of: InOrder): string =>
  of.row === name ? `${name} is ${made(of)}` : `${name} is computed from ${of.row}, ${made(of)}`

/** Refuses a call `node` that reads a row computed in order anywhere but at the index of a loop over it. @throws refusal of kind `row` */
export function checkInOrder(row: ValueOf<'row'>, index: Expr, node: Node, lowering: Lowering): void {
  const of = lowering.inOrder.get(row.name)
  if (of === undefined) return
  const name = index.kind === 'index' ? index.name : undefined
  const length = name === undefined ? undefined : lowering.loops.get(name)
  const isInner = name !== undefined && lowering.inner.has(name)
  if (length !== undefined && !isInner && sameExpr(length, row.length)) return
  const at = argumentAt(node, 0)
  const called = Node.isCallExpression(node) ? quote(node.getExpression()) : row.name
  const read = isInner ? `${quote(at)}, the index of a loop inside an element` : quote(at)
  const whole =
    of.made === 'scan' ? 'all elements combined are a reduce, or the last of a row' : 'the last element is what fold returns'
  reject(
    'row',
    at,
    `${derived(row.name, of)}, read at ${read}`,
    `read it at the index of a loop over the row: row(n, (c) => ${called}(c)); ${whole}; for any other order return the row, and read it in another op`,
  )
}

/** Refuses rows computed in order in a construct that recomputes elements. @throws refusal of kind `row` */
export function refuseInOrder(value: Expr, construct: string, at: Node, lowering: Lowering): void {
  const of = inOrderIn(value, lowering)
  if (of === undefined) return
  reject(
    'row',
    at,
    `${construct} walks over its row many times, ${of.row} is ${made(of)}, which is made once`,
    `return ${of.row} as an output, and take the ${construct} in an op of its own`,
  )
}
