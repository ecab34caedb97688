/** Evaluation of a mask on a tile as CUDA source: interval arithmetic of native/device/ranges.cuh over the bounds of the tile. */
import type { Expr } from '../../ir/expr.js'
import type { IntrinsicName } from '../../ir/intrinsics.js'
import { isUnknown, type TileMask, tileLocals } from '../../schedule/block_mask.js'
import { expressionText, type Scope } from '../print/expression.js'
import type { SlotWriter } from './slots.js'

/** Parameters of a test: places of rows and columns, and bounds of their values. */
const given = { i: 'i_range', j: 'j_range', rows: 'row_ranges', keys: 'key_ranges' } as const

/** Names in the source of a tile mask other than those of the kernel. */
export const tileMaskNames = `key_value key_values row_value row_values tile ${Object.values(given).join(' ')}`

/** Writes the slots that evaluate the mask of a tile. */
export function writeTileMask(writer: SlotWriter, { rows, keys, test }: TileMask, scope: Scope): void {
  writer.comment('What the mask makes of a tile of pairs, from bounds of places and of values of rows and columns.')
  writer.constant('row_values', rows.length)
  writer.constant('key_values', keys.length)
  writer.choices('row_value', ['b', 'h', 'i'], rows)
  writer.choices('key_value', ['b', 'h', 'j'], keys)
  const ranges = [`heddle::ranges::Ints ${given.i}`, `heddle::ranges::Ints ${given.j}`]
  const values = [
    `const heddle::MetValues<${rows.length}>& ${given.rows}`,
    `const heddle::MetValues<${keys.length}>& ${given.keys}`,
  ]
  writer.define('heddle::ranges::Truth', 'tile', ['b', 'h'], () => rangeText(test, scope), [...ranges, ...values])
}

const renamed: Partial<Record<IntrinsicName, string>> = { and: 'both', or: 'any', not: 'no', toFloat: 'to_float' }

function rangeText(expr: Expr, scope: Scope): string {
  if (isUnknown(expr))
    return `heddle::ranges::${expr.type === 'bool' ? 'either' : expr.type === 'i32' ? 'all_ints' : 'all_floats'}()`
  if (expr.kind === 'local') {
    const isRow = expr.name.startsWith(tileLocals.row)
    const at = expr.name.slice((isRow ? tileLocals.row : tileLocals.key).length)
    const text = `${isRow ? given.rows : given.keys}.${expr.type === 'f32' ? 'floats' : 'ints'}[${at}]`
    return expr.type === 'bool' ? `heddle::ranges::truth(${text})` : text
  }
  if (expr.kind === 'index' && (expr.name === 'i' || expr.name === 'j')) return given[expr.name]
  if (expr.kind !== 'call' || isOne(expr)) return `heddle::ranges::one(${expressionText(expr, scope)})`
  return `heddle::ranges::${renamed[expr.fn] ?? expr.fn}(${expr.args.map((arg) => rangeText(arg, scope)).join(', ')})`
}

/** True if an expression is the same for all pairs of a tile. */
function isOne(expr: Expr): boolean {
  if (expr.kind === 'local' || (expr.kind === 'index' && (expr.name === 'i' || expr.name === 'j'))) return false
  return expr.kind !== 'call' || (expr.fn !== 'idiv' && expr.fn !== 'mod' && expr.args.every(isOne))
}
