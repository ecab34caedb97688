/**
 * Offsets of chunks. The offset at which each row starts is computed once. Before the passes of a row, one test decides if all its chunks are full
 * and aligned (loop versioning).
 */
import type CodeBlockWriter from 'code-block-writer'
import type { Expr } from '../ir/expr.js'
import { type Pass, statementsOf } from '../schedule/passes.js'
import { contains, sameExpr } from '../schedule/rewrite.js'
import { offsetText, operandText, type Scope, startOf, wideText } from './expression.js'

/** A load or store of consecutive elements along a loop. */
export interface ChunkAccess {
  readonly tensor: string
  readonly indices: readonly Expr[]
  readonly run: number
  /** The loop's index. */
  readonly index: string
}

/** Row starts declared so far: the expression and its variable. */
export type RowStarts = { readonly start: Expr; readonly name: string }[]

/** The accesses of a pass in chunks, each place once. */
export function chunkAccesses(pass: Pass): ChunkAccess[] {
  const { loop, rows } = pass
  const stores = statementsOf(pass, 'loopStore')
  const loads = rows.flatMap((row) => (row.kind === 'loaded' ? [{ ...row.load, run: row.run }] : []))
  const chunks = stores.flatMap((s) => (s.run === undefined ? [] : [{ tensor: s.tensor, indices: s.indices, run: s.run }]))
  return [...loads, ...chunks].map(({ tensor, indices, run }) => ({ tensor, indices, run, index: loop.index }))
}

/** Declares the start offset of an access' row, once. */
export function declareStart(access: ChunkAccess, starts: RowStarts, scope: Scope, writer: CodeBlockWriter): void {
  const start = startOf(access.tensor, access.indices, access.index, scope)
  if (access.run !== Number.POSITIVE_INFINITY || start === undefined) return
  if (starts.some((known) => sameExpr(known.start, start))) return
  const name = scope.names.fresh('start')
  writer.writeLine(`const int64_t ${name} = ${wideText(start, scope)};`)
  starts.push({ start, name })
}

/** Offset of the element at loop index `at`. */
export function chunkOffset(access: ChunkAccess, at: string, starts: RowStarts, scope: Scope): string {
  if (access.run === Number.POSITIVE_INFINITY) {
    const start = startName(access, starts, scope)
    return start === undefined ? at : `${start} + ${at}`
  }
  const value = (name: string): string => (name === access.index ? at : scope.names.value(name))
  return offsetText(access.tensor, access.indices, { ...scope, names: { ...scope.names, value } })
}

/** Variable that holds the row's start; undefined if the row starts at element 0. */
function startName(access: ChunkAccess, starts: RowStarts, scope: Scope): string | undefined {
  const start = startOf(access.tensor, access.indices, access.index, scope)
  if (start === undefined) return undefined
  const known = starts.find((candidate) => sameExpr(candidate.start, start))
  if (known === undefined) throw new Error(`internal: the start of ${access.tensor} is not declared`)
  return known.name
}

/** Whole rows: the accesses covered by the test, and its source. */
export interface WholeRows {
  covers(access: ChunkAccess): boolean
  readonly condition: string
}

/**
 * Condition under which every chunk of every pass is full and aligned, as far as it is known before the first reduction. It covers rows in one run
 * whose start depends on no later result.
 */
export function wholeRows(
  passes: readonly Pass[],
  ready: ReadonlySet<string>,
  starts: RowStarts,
  scope: Scope,
  writer: CodeBlockWriter,
): WholeRows {
  const isKnown = (e: Expr): boolean => !contains(e, (node) => node.kind === 'local' && !ready.has(node.name))
  const lengths = passes.map((pass) => pass.loop.length)
  const tests = new Set(lengths.map((length) => (isKnown(length) ? `${operandText(length, scope)} % VEC == 0` : 'false')))
  const covers = (access: ChunkAccess): boolean => {
    const start = startOf(access.tensor, access.indices, access.index, scope)
    return access.run === Number.POSITIVE_INFINITY && (start === undefined || isKnown(start))
  }
  for (const access of passes.flatMap(chunkAccesses).filter(covers)) {
    declareStart(access, starts, scope, writer)
    tests.add(`heddle::is_aligned<VEC>(${scope.names.tensor(access.tensor)}, ${startName(access, starts, scope) ?? '0'})`)
  }
  return { covers, condition: [...tests].join(' &&\n      ') }
}
