/** CUDA source of every construct, by the kinds of normal form. tsc reports a missing kind. */
import { mark } from '../../ir/trace.js'
import { passStatementOf } from '../../schedule/constructs/index.js'
import type { PassStmt, RowStmt } from '../../schedule/normal.js'
import type { Step } from '../../schedule/passes.js'
import type { PassContext } from '../context.js'
import { sortedRowText } from './argsort.js'
import type { Frame, PassText, RowText, Written } from './construct.js'
import { countedRowText } from './counts.js'
import { foldedStateText } from './fold_state.js'
import { histogramText } from './histogram.js'
import { letText } from './let.js'
import { meetingText } from './meet.js'
import { mergeText } from './merge.js'
import { reductionText } from './reduce.js'
import { sharedRowText } from './shared_row.js'
import { storeText } from './store.js'
import { loopStoreText } from './store_row.js'
import { thresholdText } from './threshold.js'
import { rankingText } from './top_k.js'

const rowTexts: { readonly [K in RowStmt['kind']]: RowText<Extract<RowStmt, { kind: K }>> } = {
  let: letText,
  store: storeText,
  threshold: thresholdText,
  foldState: foldedStateText,
  meet: meetingText,
}

const passTexts: { readonly [K in PassStmt['kind']]: PassText<Extract<PassStmt, { kind: K }>> } = {
  reduce: reductionText,
  merge: mergeText,
  histogram: histogramText,
  counts: countedRowText,
  sharedRow: sharedRowText,
  topK: rankingText,
  argsort: sortedRowText,
  loopStore: loopStoreText,
}

/** The object for a statement's own kind, to be called with that statement: methods are bivariant, so no cast is needed. */
const rowTextOf = ({ kind }: Pick<RowStmt, 'kind'>): RowText<RowStmt> => rowTexts[kind]

const passTextOf = ({ kind }: Pick<PassStmt, 'kind'>): PassText<PassStmt> => passTexts[kind]

/** A statement that runs once per row, as one line. */
export const rowLine = (stmt: RowStmt, context: PassContext): string => rowTextOf(stmt).write(stmt, context)

/** Source parts of a statement of a pass. */
export function partsOf(stmt: PassStmt, frame: Frame): Written {
  const places = mark(...passStatementOf(stmt).values(stmt))
  const parts = Object.entries<Written[keyof Written]>({ ...passTextOf(stmt).write(stmt, frame) })
  return Object.fromEntries(parts.map(([part, lines]) => [part, lines && (() => lines().map((line) => line + places))]))
}

/** Device headers that steps need besides kernel.cuh. */
export function headersOf(steps: readonly Step[]): readonly string[] {
  const texts = steps.flatMap((step): readonly { readonly header?: string }[] =>
    step.kind === 'pass' ? step.pass.statements.map(passTextOf) : [rowTextOf(step)],
  )
  return [...new Set(texts.flatMap(({ header }) => header ?? []))]
}
