/** A row in shared memory as CUDA text: its threads write an element each, meet, and read any of them afterwards. */
import type { SharedRow } from '../schedule/normal.js'
import { expressionText, type Scope } from './expression.js'
import { scalarText } from './names.js'

/** Declares the row's memory, and what writes and reads it. */
export function declareLines({ name, type, length }: SharedRow, { names }: Scope): string[] {
  const row = names.value(name)
  const places = names.fresh(`${row}_places`)
  return [
    `HEDDLE_SHARED(${scalarText[type]}, ${places}, Team::rows * ${length});`,
    `const auto ${row} = heddle::shared_row<Team, ${scalarText[type]}, ${length}>(${places});`,
  ]
}

/** Writes one element. */
export function setLine({ name, loop, value }: SharedRow, scope: Scope): string {
  scope.used.indices.add(loop.index)
  return `${scope.names.value(name)}.set(${scope.names.value(loop.index)}, ${expressionText(value, scope)});`
}

/** After the last chunk; from here on, elements can be read. */
export function finishLine({ name }: SharedRow, { names, shared }: Scope): string {
  shared?.set(name, `${names.value(name)}.get`)
  return 'team.meet();'
}
