/** A row in shared memory as CUDA source: each thread of the row writes one element, they synchronise, and may then read any element. */
import type { SharedRow } from '../../schedule/normal.js'
import { type Pass, statementsOf } from '../../schedule/passes.js'
import type { PassContext } from '../context.js'
import { expressionText, type Scope } from '../expression.js'
import { scalarText } from '../names.js'
import type { PassText } from './construct.js'

export const sharedRowText: PassText<SharedRow> = {
  header: 'shared_row.cuh',
  write(row, { context }) {
    const { names, shared } = context
    const { name, type } = row
    const length = lengthText(row, context)
    const text = names.value(name)
    const places = names.fresh(`${text}_places`)
    return {
      declare: () => [
        `HEDDLE_SHARED(${scalarText[type]}, ${places}, Team::rows * ${length});`,
        `const auto ${text} = heddle::shared_row<Team, ${scalarText[type]}, ${length}>(${places});`,
      ],
      element: () => [setLine(row, context)],
      finish: () => {
        shared?.set(name, `${text}.get`)
        return ['team.meet();']
      },
    }
  },
}

/** Elements that a row has memory for: its length, or, if that is not known, the number that the team keeps in registers. */
const lengthText = ({ length, loop }: SharedRow, { walk }: PassContext): string =>
  loop.length.kind === 'const' || walk !== 'kept' ? `${length}` : 'Team::lanes * CHUNKS * VEC'

/** Writes one element. */
function setLine({ name, loop, value }: SharedRow, scope: Scope): string {
  scope.used.indices.add(loop.index)
  return `${scope.names.value(name)}.set(${scope.names.value(loop.index)}, ${expressionText(value, scope)});`
}

/** True if a pass only writes shared rows. */
export const isAlone = (pass: Pass): boolean =>
  pass.statements.length > 0 &&
  pass.statements.every(({ kind }) => kind === 'sharedRow') &&
  pass.rows.every((row) => row.kind === 'computed' && !row.keep)

/**
 * Writes the shared rows of a pass that only does that, with one element per lane. An element is a serial reduction, and a lane with a chunk of
 * them would compute one after the other while its neighbours wait. `compute` are the lines before the elements.
 */
export function writeElements(pass: Pass, compute: readonly string[], length: string, context: PassContext): void {
  const { writer, names } = context
  const index = names.value(pass.loop.index)
  writer.write(`for (int ${index} = team.lane(); ${index} < ${length}; ${index} += Team::lanes)`).block(() => {
    for (const line of [...compute, ...statementsOf(pass, 'sharedRow').map((row) => setLine(row, context))])
      writer.writeLine(line)
  })
}
