/**
 * The statements of a kernel and the object of each kind. A scalar that threads compute in loops of their own is a file of team/ and no kind of its own.
 * Another construct is a file in this folder and its two lines here; tsc then asks for its scheduling and its emission.
 */
import { type Argsort, argsortConstruct } from './argsort.js'
import type { Construct } from './construct.js'
import { type Counts, countsConstruct } from './counts.js'
import { type FoldRow, foldRowConstruct } from './fold_row.js'
import { type FoldState, foldStateConstruct } from './fold_state.js'
import { type Histogram, histogramConstruct } from './histogram.js'
import { type Let, letConstruct } from './let.js'
import { type Merge, mergeConstruct } from './merge.js'
import { type MergeScan, mergeScanConstruct } from './merge_scan.js'
import { type Reduce, reduceConstruct } from './reduce.js'
import { type Row, rowConstruct } from './row.js'
import { type Scan, scanConstruct } from './scan.js'
import { type Store, storeConstruct } from './store.js'
import { type StoreRow, storeRowConstruct } from './store_row.js'
import { type TeamCall, teamCallConstruct } from './team_call.js'
import { type TopK, topKConstruct } from './top_k.js'

export type Stmt =
  | Let
  | Row
  | Reduce
  | Scan
  | Merge
  | MergeScan
  | FoldRow
  | FoldState
  | TeamCall
  | TopK
  | Argsort
  | Counts
  | StoreRow
  | Histogram
  | Store

export type StmtOf<K extends Stmt['kind']> = Extract<Stmt, { kind: K }>

export const constructs: { readonly [K in Stmt['kind']]: Construct<StmtOf<K>> } = {
  let: letConstruct,
  row: rowConstruct,
  reduce: reduceConstruct,
  scan: scanConstruct,
  merge: mergeConstruct,
  mergeScan: mergeScanConstruct,
  foldRow: foldRowConstruct,
  foldState: foldStateConstruct,
  team: teamCallConstruct,
  topK: topKConstruct,
  argsort: argsortConstruct,
  counts: countsConstruct,
  storeRow: storeRowConstruct,
  histogram: histogramConstruct,
  store: storeConstruct,
}

/**
 * The object of a statement's kind, to be called with that statement only. tsc treats methods as bivariant, so this needs no cast; a
 * statement of another kind would be a defect of the caller.
 */
export const constructOf = ({ kind }: Pick<Stmt, 'kind'>): Construct<Stmt> => constructs[kind]
