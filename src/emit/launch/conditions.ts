/** Parts of launchers: extents and products of extents, and the conditions under which a variant runs. */
import type { RowAxis } from '../../ir/kernel.js'
import { extentOf, isMerged } from '../../ir/row_axis.js'
import { extentIn, type Limit, type MappedKernel } from '../../schedule/mapped.js'
import { operandText, type Scope, wideText } from '../print/expression.js'

/** A number of elements with checked arithmetic. */
export const toCount = (operand: string): string => `heddle::Count(${operand})`

/** The extent of an axis as a factor of a product. Products of dimensions may leave 64 bits. */
export const extentText = (axis: RowAxis, mapped: Pick<MappedKernel, 'instance'>, scope: Scope): string => {
  const extent = extentOf(axis, extentIn(mapped))
  return isMerged(axis) ? `(${wideText(extent, scope, toCount)})` : operandText(extent, scope)
}

export const productText = ([first, ...rest]: readonly string[]): string => [toCount(first ?? '1'), ...rest].join(' * ')

export function conditionText(limit: Limit): string {
  const { tuned } = limit
  const tests = [
    ...(tuned === undefined ? [] : [`length == ${tuned.length}`]),
    ...(tuned === undefined || tuned.fromRows === 1 ? [] : [`rows >= ${tuned.fromRows}`]),
    ...(limit.length === undefined ? [] : [`length <= ${limit.length}`]),
    ...(limit.whole === undefined ? [] : [`length % ${limit.whole} == 0`]),
    ...(limit.rows === undefined ? [] : [rowsText(limit.rows, limit.odd)]),
    // Last, since it queries the device.
    ...(tuned === undefined ? [] : [runsOn(tuned.architecture)]),
  ]
  return tests.length === 0 ? '' : `if (${tests.join(' && ')}) `
}

const rowsText = (rows: number, odd: Limit['odd']): string =>
  odd === undefined ? `rows <= ${rows}` : `(rows <= ${rows} || (length > ${odd.above} && length % ${odd.width} != 0))`

/** True if the device has a measured architecture, by the test in tuned.cuh. */
export const runsOn = (architecture: string): string => `heddle::runs_on(${architecture.replace('sm_', '').replace('simt', '0')})`

export const capitalise = (sentence: string): string => sentence.charAt(0).toUpperCase() + sentence.slice(1)
