/** CUDA source of the constructs that lanes compute together, and the device headers of all. tsc reports a missing kind. */
import type { Call, Search } from '../../loop/ir.js'
import type { PassStmt, RowStmt } from '../../schedule/normalise/normal.js'
import type { Step } from '../../schedule/normalise/passes.js'
import type { PassContext } from '../print/context.js'
import { sortedRowText } from './argsort.js'
import type { Frame, PassText, RowText, Written } from './construct.js'
import { countedRowText } from './counts.js'
import { foldedStateText } from './fold_state.js'
import { histogramText } from './histogram.js'
import { teamText } from './team.js'
import { rankingText } from './top_k.js'

type Called = Call['stmt']
type Searched = Search['stmt']

const callTexts: { readonly [K in Called['kind']]: RowText<Extract<Called, { kind: K }>> } = {
  team: teamText,
  foldState: foldedStateText,
}

const passTexts: { readonly [K in Searched['kind']]: PassText<Extract<Searched, { kind: K }>> } = {
  histogram: histogramText,
  counts: countedRowText,
  topK: rankingText,
  argsort: sortedRowText,
}

/** Device headers besides kernel.cuh, of the constructs that need one. */
const headers: { readonly [K in PassStmt['kind']]?: string | undefined } = {
  ...Object.fromEntries(Object.entries<{ readonly header?: string }>(passTexts).map(([kind, { header }]) => [kind, header])),
  merge: 'fields.cuh',
  sharedRow: 'shared_row.cuh',
}

/** The object for the statement's own kind: methods are bivariant, so no cast is needed. */
const callTextOf = ({ kind }: Called): RowText<Called> => callTexts[kind]

/** A construct that the team of a row computes in loops of its own. */
export function callText(stmt: Called, context: PassContext): string {
  return callTextOf(stmt).write(stmt, context)
}

/** Source parts of a construct in a pass. */
export function searchTexts(stmt: Searched, frame: Frame): Written {
  const text: PassText<Searched> = passTexts[stmt.kind]
  return text.write(stmt, frame)
}

/** Device headers that steps need besides kernel.cuh. */
export const headersOf = (steps: readonly Step[]): readonly string[] => [
  ...new Set(
    steps.flatMap((step) => {
      if (step.kind === 'pass') return step.pass.statements.flatMap(({ kind }) => headers[kind] ?? [])
      return isCalled(step) ? (callTextOf(step).header?.(step) ?? []) : []
    }),
  ),
]

const isCalled = (step: RowStmt): step is Called => Object.hasOwn(callTexts, step.kind)
