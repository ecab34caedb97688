/** Rows in shared memory as CUDA source: lanes write elements, meet, and may then read any element. */

import { mark } from '../../ir/trace.js'
import type { Put } from '../../loop/ir.js'
import type { SharedRow } from '../../schedule/normalise/normal.js'
import type { PassContext } from '../print/context.js'
import { expressionText, type Scope } from '../print/expression.js'
import { scalarText } from '../print/names.js'

/** Declares the memory of a row, for all rows of a block. */
export function sharedLines(row: SharedRow, context: PassContext): readonly string[] {
  const { names } = context
  const { name, type } = row
  const length = lengthText(row, context)
  const text = names.value(name)
  const places = names.fresh(`${text}_places`)
  return [
    `HEDDLE_SHARED(${scalarText[type]}, ${places}, Team::rows * ${length});`,
    `const auto ${text} = heddle::shared_row<Team, ${scalarText[type]}, ${length}>(${places});`,
  ].map((line) => line + mark(row.value))
}

/** Elements that a row has memory for: its length, or, if that is not known, the number that the team keeps in registers. */
const lengthText = ({ length, loop }: SharedRow, { walk }: PassContext): string =>
  loop.length.kind === 'const' || walk !== 'kept' ? `${length}` : 'Team::lanes * CHUNKS * VEC'

/** Writes one element. */
export function putLine({ row, index, value }: Put, scope: Scope): string {
  scope.used.indices.add(index)
  return `${scope.names.value(row)}.set(${scope.names.value(index)}, ${expressionText(value, scope)});${mark(value)}`
}
