/**
 * What a schedule cannot compute well, in words with what it costs: reads that neighbouring threads do not share, one block for
 * everything, a block for rows that may be short, a row value that is computed again wherever it is read, a reduction that every row
 * repeats. Notes change nothing; `heddle gen` and `heddle inspect` print them at the line of the op.
 */

import { index as indexVar } from '../ir/build.js'
import { dtypeInfo } from '../ir/dtype.js'
import type { Expr, ExprOf } from '../ir/expr.js'
import { type Instance, resolveDType } from '../ir/instance.js'
import type { IntrinsicName } from '../ir/intrinsics.js'
import type { StmtOf } from '../ir/kernel.js'
import { printExpr } from '../ir/print.js'
import { freeNames, introducedNames, operands, stmtExprs, substitute } from '../ir/walk.js'
import { offsetOf } from './access.js'
import { passStatementOf } from './constructs/index.js'
import { isHostExpr } from './host_expr.js'
import { type MappedKernel, stepsOf } from './mapped.js'
import { rowExprs } from './normal.js'
import { statementsOf } from './passes.js'
import { contains, keyOf, usesIndex } from './rewrite.js'
import { isShared, readsElsewhere } from './shared_rows.js'
import { strideAlong } from './stride.js'

export interface Note {
  readonly kind: 'strided' | 'one block' | 'block a row' | 'recomputed'
  /** What is so, why it costs, and what to write instead. */
  readonly message: string
}

/** Bytes that memory gives at least, and elements apart from which on neighbours share none of them. */
const sectorBytes = 32
/** Multiprocessors of an H200, which one block has one of. */
const multiprocessors = 132
/** Elements that one block computes in about the time of a launch. */
const fewElements = 8192

/** The notes of one instance, each once. */
export function notesOf(mapped: MappedKernel): readonly Note[] {
  return [
    ...stridedNotes(mapped),
    ...oneBlockNotes(mapped),
    ...blockNotes(mapped),
    ...recomputedNotes(mapped.instance),
    ...repeatedNotes(mapped),
  ]
}

/** A load, and the indices of the loops inside of which a thread makes it again and again, outermost first. */
interface RepeatedLoad {
  readonly load: ExprOf<'load'>
  readonly serial: readonly string[]
}

/** The loads of a value that a thread computes, of which each is in a loop of its own where the value is. @param around loops around the value */
function loadsOf(value: Expr, around: readonly string[]): readonly RepeatedLoad[] {
  const found: RepeatedLoad[] = []
  const seen = new Set<Expr>()
  const walk = (expr: Expr, serial: readonly string[]): void => {
    if (seen.has(expr)) return
    seen.add(expr)
    if (expr.kind === 'load') found.push({ load: expr, serial: serial.filter((index) => usesIndex(expr, index)) })
    const inside = expr.kind === 'fold' ? [...serial, expr.index] : serial
    for (const operand of operands(expr)) walk(operand, inside)
  }
  walk(value, around)
  return found
}

/** What neighbouring threads touch far from each other, and no thread touches element by element. */
function stridedNotes({ instance, program, axes, across, vec }: MappedKernel): Note[] {
  const { kernel, dims, types } = instance
  const found = new Map<string, Note>()
  const see = (
    does: 'read' | 'written',
    tensor: string,
    indices: readonly Expr[],
    index: string,
    serial: readonly string[] = [],
  ): void => {
    const param = kernel.tensors.find(({ name }) => name === tensor)
    if (param === undefined) return
    const { bytes } = dtypeInfo[resolveDType(param.dtype, types)]
    // Neighbouring threads have chunks, whose elements one thread touches itself.
    const offset = offsetOf(param, indices, dims)
    if (strideAlong(offset, index, sectorBytes / bytes / vec) !== 'far') return
    // What memory gives for one element has those that the thread reads next.
    const innermost = serial.at(-1)
    if (innermost !== undefined && strideAlong(offset, innermost, sectorBytes / bytes) === 'near') return
    const place = `${tensor}[${indices.map(printExpr).join(', ')}]`
    const message =
      `${place} is ${does} with neighbours of ${index} far apart: memory moves ${sectorBytes} bytes for each ${bytes} that are used, ` +
      `up to ${sectorBytes / bytes} times the traffic; let ${index} run along the last axis of ${tensor}, or give ${tensor} a layout in which it does`
    // Loops that a body writes out twice differ in the name of their index.
    const unnamed = new Map(serial.map((each, at) => [each, indexVar(`(${at})`)]))
    const key = [does, tensor, ...indices.map((each) => keyOf(substitute(each, unnamed)))].join(' ')
    if (!found.has(key)) found.set(key, { kind: 'strided', message })
  }
  const reads = (value: Expr, index: string, around: readonly string[] = []): void => {
    for (const { load, serial } of loadsOf(value, around))
      if (usesIndex(load, index)) see('read', load.tensor, load.indices, index, serial)
  }
  if (program.kind === 'totals') {
    const { index = '' } = program.loops.at(-1) ?? {}
    for (const value of program.totals.flatMap(({ values }) => values)) reads(value, index)
  }
  const isThreads = program.kind === 'rows' && program.variants.every(({ team }) => team.kind === 'thread')
  for (const step of stepsOf({ program })) {
    if (step.kind !== 'pass') continue
    const { loop, rows, statements } = step.pass
    const along = across?.index ?? (isThreads ? axes.at(-1)?.index : undefined) ?? loop.index
    const around = isThreads ? [loop.index] : []
    for (const row of rows) if (row.kind !== 'loaded') for (const value of rowExprs(row)) reads(value, along, around)
    for (const s of statements) for (const value of passStatementOf(s).values(s)) reads(value, along, around)
    for (const { tensor, indices, run } of statementsOf(step.pass, 'loopStore'))
      if (run === undefined) see('written', tensor, indices, along)
  }
  return [...found.values()]
}

/** Everything by the threads of one block. */
function oneBlockNotes({ program, axes }: MappedKernel): Note[] {
  if (program.kind !== 'rows' || axes.length > 0) return []
  const loops = program.kept.flatMap((step) => (step.kind === 'pass' ? [step.pass.loop] : []))
  const long = loops.find(({ length }) => length.kind !== 'const' || Number(length.value) > fewElements)
  if (long === undefined) return []
  const message =
    `there is one row, of ${printExpr(long.length)} elements, and one block computes it: one of the ${multiprocessors} multiprocessors ` +
    'of an H200 works; reductions that need no other are divided over blocks where the op returns nothing but numbers made of them, so write these as an op and what reads them as another'
  return [{ kind: 'one block', message }]
}

/** A block for each of many rows, none of which is known to be long. */
function blockNotes({ program, axes }: MappedKernel): Note[] {
  if (program.kind !== 'rows' || axes.length === 0 || program.lengths !== undefined) return []
  const [only, ...others] = program.variants
  if (only?.team.kind !== 'block' || others.length > 0) return []
  const loops = program.kept.flatMap((step) => (step.kind === 'pass' ? [step.pass.loop] : []))
  const own = loops.find(({ length }) => !isEither(length))
  if (own === undefined) return []
  const length = printExpr(own.length)
  const message =
    `the row alone knows how long ${length} is, so that a block of ${only.team.lanes} threads computes each row, however short; ` +
    `where no row is longer than 128, say, write minimum(128, ${length}): lanes of a warp compute a row then, or a thread`
  return [{ kind: 'block a row', message }]
}

/** One of several lengths that are known before the kernel runs. */
const isEither = (length: Expr): boolean =>
  isHostExpr(length) || (length.kind === 'call' && length.fn === 'select' && length.args.slice(1).every(isEither))

/** Functions that take as long as ten additions or more. */
const slow: ReadonlySet<IntrinsicName> = new Set([
  ...(['exp', 'exp2', 'expm1', 'log', 'log2', 'log10', 'log1p', 'pow'] as const),
  ...(['sin', 'cos', 'tanh', 'erf', 'gelu', 'uniform'] as const),
])

/** Rows whose elements are read at other places than their own, and computed there once more. */
function recomputedNotes({ kernel }: Instance): Note[] {
  const { body } = kernel
  return body.flatMap((s): Note[] => {
    if ((s.kind !== 'row' && s.kind !== 'scan') || !body.some((other) => readsElsewhere(other, s))) return []
    if (s.kind === 'row' && isShared(s, body, undefined)) return []
    const cost = costOf(s)
    if (cost === undefined) return []
    const message =
      `${s.name} is read at another place than the index of a loop over it, where it is computed again: ${cost} for every such element; ` +
      `read it at the index of its loop, or write it as an output of an op of its own`
    return [{ kind: 'recomputed', message }]
  })
}

/** Reductions that are the same all along an axis, each row of which computes them. */
function repeatedNotes({ instance: { kernel }, axes, program }: MappedKernel): Note[] {
  if (program.kind !== 'rows' && program.kind !== 'elementwise') return []
  const isStored = (dim: string): boolean => kernel.tensors.some(({ access, dims }) => access === 'out' && dims.includes(dim))
  /** The axes that what is known by a name differs along. */
  const along = new Map<string, ReadonlySet<string>>(kernel.rows.map(({ index }) => [index, new Set([index])]))
  return kernel.body.flatMap((s): Note[] => {
    const read = new Set(stmtExprs(s).flatMap((e) => [...freeNames(e)].flatMap((name) => [...(along.get(name) ?? [])])))
    for (const name of introducedNames(s)) along.set(name, read)
    // A list beside the tensors, of ends say, costs little.
    if (s.kind !== 'reduce' || s.length.kind !== 'dim' || !isStored(s.length.name)) return []
    // Of an axis that elements are replaced along, few places may be left.
    const isWalked = (index: string): boolean => axes.some((axis) => axis.index === index && axis !== program.interval?.axis)
    const same = kernel.rows.filter(({ index }) => !read.has(index) && isWalked(index))
    if (same.length === 0) return []
    const places = same.map(({ index }) => index).join(' and ')
    const message =
      `${s.name}, a ${s.monoid} of ${printExpr(s.length)} elements, is the same for every ${places} and is computed again for each: ` +
      `${same.map(({ dim }) => dim).join(' x ')} times the work; let an op of its own return it`
    return [{ kind: 'recomputed', message }]
  })
}

/** What an element costs, where that is worth a word. */
function costOf(s: StmtOf<'row'> | StmtOf<'scan'>): string | undefined {
  if (s.kind === 'scan') return `a ${s.monoid} of up to ${printExpr(s.length)} elements`
  let cost: string | undefined
  contains(s.value, (node) => {
    if (node.kind === 'fold') cost = `a ${node.monoid} of ${printExpr(node.length)} elements`
    else if (node.kind === 'call' && slow.has(node.fn)) cost ??= `${node.fn} of ${printExpr(node.args[0] ?? node)}`
    return false
  })
  return cost
}
