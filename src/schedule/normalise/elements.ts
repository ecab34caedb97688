/**
 * Helpers of normalisation: the loop of a construct, inlining of row elements that are read at another index than the loop's, and detection of
 * contiguous loads. Used for every statement that `normalise` processes.
 */
import { call, dim as dimVar, i32, index as indexVar } from '../../ir/build.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import { getOwn } from '../../ir/get_own.js'
import { type Instance, resolveDType } from '../../ir/instance.js'
import type { Kernel, TensorParam } from '../../ir/kernel.js'
import { classify, offsetOf } from '../access/access.js'
import { multiplesOf } from '../access/multiples.js'
import {
  type CountedRow,
  type FoldedState,
  freshName,
  type Interleaved,
  type Loop,
  type Pieces,
  type Ranking,
  type RowDef,
  type SharedRow,
  type SortedRow,
  type Statement,
} from './normal.js'
import { contains, hashOf, isZero, rewriteDown, sameExpr, substituteIndex } from './rewrite.js'

/** State of a kernel while its statements are processed one after the other. */
export interface Context {
  readonly kernel: Kernel
  /** All statements, including those before and after the current one. */
  readonly statements: readonly Statement[]
  readonly fixed: Readonly<Record<string, number>>
  readonly types: Instance['types']
  readonly loops: Map<string, Loop>
  /** Index of the row axis that became the loop; undefined if none did. */
  readonly elementIndex: string | undefined
  /** Extent of each index variable. */
  readonly extents: Map<string, Expr>
  readonly lets: Map<string, Expr>
  readonly rows: Map<string, RowDef>
  /** Rows in shared memory. */
  readonly shared: Map<string, Ranking | SortedRow | SharedRow | CountedRow | FoldedState>
  readonly taken: Set<string>
  /** Present if every chunk lies in one piece of its row. */
  readonly pieces: Pieces | undefined
  /** True if loads beside the place of an element are made in spans. */
  readonly inSpans: boolean
  /** Loads and stores of members of groups, by the hashes of their places. */
  readonly interleaved: ReadonlyMap<string, Interleaved>
}

/** True if an element depends on a scan at its own index. */
export const readsScan = (e: Expr, rows: ReadonlyMap<string, RowDef>): boolean =>
  contains(e, (node) => {
    const row = node.kind === 'element' ? rows.get(node.row) : undefined
    return row?.kind === 'scanned' || (row?.kind === 'computed' && readsScan(row.value, rows))
  })

/**
 * Loop of a row value. If a row axis became the loop, every element of that axis has a row of its own. The row then shares no loop, and its
 * elements are inlined wherever they are read.
 */
export const rowLoop = (row: { readonly index: string; readonly length: Expr }, context: Context): Loop =>
  context.elementIndex === undefined || context.elementIndex === row.index
    ? loopFor(row.index, row.length, context)
    : { index: row.index, length: lengthOf(row.length, context) }

/** A length over dimensions and attributes where possible: a `let` is written out so that the host can evaluate it. */
const lengthOf = (length: Expr, context: Context): Expr => inlineElements(writeOut(length, context.lets), undefined, context)

/** Loop of a length; loops of equal length are one. */
export function loopFor(index: string, length: Expr, context: Context): Loop {
  const written = lengthOf(length, context)
  const key = hashOf(written)
  const loop = context.loops.get(key) ?? { index, length: written }
  context.loops.set(key, loop)
  context.extents.set(loop.index, written)
  return loop
}

const writeOut = (e: Expr, lets: ReadonlyMap<string, Expr>): Expr =>
  rewriteDown(e, (node) => {
    const value = node.kind === 'local' ? lets.get(node.name) : undefined
    return value === undefined ? undefined : writeOut(value, lets)
  })

/** Element of a construct over the index of the shared loop, with elements at other indices inlined. */
export const overLoop = (value: Expr, index: string, loop: Loop, context: Context): Expr =>
  inlineElements(substituteIndex(value, index, indexVar(loop.index)), loop, context)

/** Inlines elements of rows, except those at the loop's own index and those in shared memory. */
export const inlineElements = (e: Expr, loop: Loop | undefined, context: Context): Expr =>
  rewriteDown(e, (node) => {
    if (node.kind !== 'element') return undefined
    if (context.shared.has(node.row)) return { ...node, index: inlineElements(node.index, loop, context) }
    const row = rowOf(node.row, context)
    if (loop !== undefined && row.loop === loop && sameExpr(node.index, indexVar(loop.index))) return node
    const index = inlineElements(node.index, loop, context)
    return inlineElements(elementAt(row, index, context), loop, context)
  })

/** Computation of one element of a row, on its own. An element of a scan combines all elements up to it again. */
function elementAt(row: RowDef, at: Expr, context: Context): Expr {
  if (row.kind === 'loaded' && row.shift !== undefined)
    throw new Error(`internal: ${context.kernel.name} reads ${row.name} at another place than its own`)
  if (row.kind === 'loaded') return substituteIndex(row.load, row.loop.index, at)
  if (row.kind === 'computed') return substituteIndex(row.value, row.loop.index, at)
  const [element] = row.values
  if (typeof row.monoid !== 'string' || element === undefined)
    throw new Error(`internal: ${context.kernel.name} reads ${row.name} at another place than its own`)
  const index = freshName(row.loop.index, context.taken)
  const value = substituteIndex(element, row.loop.index, indexVar(index))
  return { kind: 'fold', type: row.type, monoid: row.monoid, length: call('add', at, i32(1)), index, value }
}

/** Run of consecutive elements that a load reads along a loop; undefined if there is none. */
export function runOf(load: ExprOf<'load'>, loop: Loop, context: Context): number | undefined {
  const access = classify(
    offsetOf(tensorOf(load.tensor, context), load.indices, context.fixed),
    loop.index,
    multiplesOf(context.kernel),
  )
  return access.kind === 'contiguous' ? access.run : undefined
}

type Loaded = Extract<RowDef, { readonly kind: 'loaded' }>

export function addLoadedRow(
  name: string,
  load: ExprOf<'load'>,
  {
    loop,
    run,
    guard,
    shift,
    interleaved,
  }: Pick<Loaded, 'loop' | 'run' | 'shift' | 'interleaved'> & { readonly guard?: Expr | undefined },
  context: Context,
): void {
  const dtype = resolveDType(tensorOf(load.tensor, context).dtype, context.types)
  const placed = {
    ...(guard === undefined ? {} : { guard }),
    ...(shift === undefined ? {} : { shift }),
    ...(interleaved === undefined ? {} : { interleaved }),
  }
  context.rows.set(name, { kind: 'loaded', name, type: load.type, loop, load, dtype, run, ...placed })
}

/**
 * True if every index of a load is a variable that runs over exactly that dimension, or over that and those merged into it. The load may then be made even where the body would not make
 * it.
 */
export function isInBounds(load: ExprOf<'load'>, context: Context): boolean {
  const tensor = tensorOf(load.tensor, context)
  let merged: Expr | undefined
  const isEach = load.indices.every((index, i) => {
    const dim = tensor.dims[i]
    if (dim === undefined) return false
    const known = getOwn(context.fixed, dim)
    const own = known === undefined ? dimVar(dim) : i32(known)
    const span = merged === undefined ? own : call('mul', merged, own)
    if (index.kind === 'const' && known !== undefined && merged === undefined)
      return Number(index.value) >= 0 && Number(index.value) < known
    // Places of axes that are merged into a later one are 0.
    merged = index.kind === 'index' ? undefined : span
    if (index.kind !== 'index') return isZero(index)
    const extent = context.extents.get(index.name)
    return extent !== undefined && sameExpr(extent, span)
  })
  return isEach && merged === undefined
}

function tensorOf(name: string, { kernel }: Context): TensorParam {
  const tensor = kernel.tensors.find((t) => t.name === name)
  if (tensor === undefined) throw new Error(`internal: ${kernel.name} has no tensor ${name}`)
  return tensor
}

function rowOf(name: string, { rows, kernel }: Context): RowDef {
  const row = rows.get(name)
  if (row === undefined) throw new Error(`internal: ${kernel.name} has no row ${name}`)
  return row
}
