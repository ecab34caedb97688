/** Scheduling of every construct, by the kinds of src/ir/constructs and of normal form. tsc reports a missing kind. */
import type { NormalStmt, PassStmt, RowStmt, Statement } from '../normalise/normal.js'
import { normaliseArgsort, sortedRowStatement } from './argsort.js'
import type { Normalise, PassStatement, RowStatement, Scheduled } from './construct.js'
import { countedRowStatement, normaliseCounts } from './counts.js'
import { normaliseFoldRow } from './fold_row.js'
import { foldedStateStatement, normaliseFoldState } from './fold_state.js'
import { histogramStatement, normaliseHistogram } from './histogram.js'
import { letStatement, normaliseLet } from './let.js'
import { meetingStatement } from './meet.js'
import { mergeStatement, normaliseMerge, normaliseMergeScan } from './merge.js'
import { normaliseReduce, reductionStatement } from './reduce.js'
import { normaliseRow } from './row.js'
import { normaliseScan } from './scan.js'
import { sharedRowStatement } from './shared_row.js'
import { normaliseStore, storeStatement } from './store.js'
import { loopStoreStatement, normaliseStoreRow, normaliseWrittenStore } from './store_row.js'
import { normaliseTeam, teamStatement } from './team.js'
import { normaliseTopK, rankingStatement } from './top_k.js'

type Of<S extends { readonly kind: string }, K extends S['kind']> = Extract<S, { kind: K }>

export const normalisers: { readonly [K in Statement['kind']]: Normalise<Of<Statement, K>> } = {
  let: normaliseLet,
  row: normaliseRow,
  reduce: normaliseReduce,
  scan: normaliseScan,
  merge: normaliseMerge,
  mergeScan: normaliseMergeScan,
  foldRow: normaliseFoldRow,
  foldState: normaliseFoldState,
  team: normaliseTeam,
  topK: normaliseTopK,
  argsort: normaliseArgsort,
  counts: normaliseCounts,
  histogram: normaliseHistogram,
  store: normaliseStore,
  storeRow: normaliseStoreRow,
  writtenStore: normaliseWrittenStore,
}

const rowStatements: { readonly [K in RowStmt['kind']]: RowStatement<Of<RowStmt, K>> } = {
  let: letStatement,
  store: storeStatement,
  team: teamStatement,
  foldState: foldedStateStatement,
  meet: meetingStatement,
}

/** In the order in which the statements of one pass are emitted. */
const passStatements: { readonly [K in PassStmt['kind']]: PassStatement<Of<PassStmt, K>> } = {
  reduce: reductionStatement,
  merge: mergeStatement,
  histogram: histogramStatement,
  counts: countedRowStatement,
  sharedRow: sharedRowStatement,
  topK: rankingStatement,
  argsort: sortedRowStatement,
  loopStore: loopStoreStatement,
}

/** The object for a statement's own kind, to be called with that statement: methods are bivariant, so no cast is needed. */
export const rowStatementOf = ({ kind }: Pick<RowStmt, 'kind'>): RowStatement<RowStmt> => rowStatements[kind]

export const passStatementOf = ({ kind }: Pick<PassStmt, 'kind'>): PassStatement<PassStmt> => passStatements[kind]

export const scheduledOf = (s: NormalStmt): Scheduled<NormalStmt> => (isPassStmt(s) ? passStatementOf(s) : rowStatementOf(s))

export const isPassStmt = (s: NormalStmt): s is PassStmt => Object.hasOwn(passStatements, s.kind)

const passOrder = Object.keys(passStatements)

/** Statements of one pass in the order in which they are emitted: by kind, and in the order of the body within a kind. */
export const inPassOrder = (statements: readonly PassStmt[]): PassStmt[] =>
  [...statements].sort((a, b) => passOrder.indexOf(a.kind) - passOrder.indexOf(b.kind))
