/** A row in shared memory as CUDA text: its threads write an element each, meet, and read any of them afterwards. */
import type CodeBlockWriter from 'code-block-writer'
import type { SharedRow } from '../schedule/normal.js'
import { type Pass, passValues } from '../schedule/passes.js'
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

/** Whether a pass writes shared rows and does nothing else. */
export const isAlone = (pass: Pass): boolean =>
  pass.sharedRows.length > 0 &&
  passValues(pass).length === pass.sharedRows.length &&
  pass.rows.every((row) => row.kind === 'computed' && !row.keep)

/**
 * Writes the shared rows of a pass that does nothing else, an element a lane: an element is a fold, and a lane with a chunk of them would
 * compute one after the other while its neighbours wait. `compute` are the lines before the elements.
 */
export function writeElements(
  { loop, sharedRows }: Pass,
  compute: readonly string[],
  length: string,
  scope: Scope & { readonly writer: CodeBlockWriter },
): void {
  const { writer, names } = scope
  const index = names.value(loop.index)
  writer.write(`for (int ${index} = team.lane(); ${index} < ${length}; ${index} += Team::lanes)`).block(() => {
    for (const line of [...compute, ...sharedRows.map((row) => setLine(row, scope))]) writer.writeLine(line)
  })
}

/** After the last chunk; from here on, elements can be read. */
export function finishLine({ name }: SharedRow, { names, shared }: Scope): string {
  shared?.set(name, `${names.value(name)}.get`)
  return 'team.meet();'
}
