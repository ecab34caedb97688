/**
 * Notes on strided reads and stores: those of neighbouring threads that are far apart, so that memory transfers one sector for each. Only the used
 * part of a sector counts. Known extents from facts, reads of the same sector, and streams that are each contiguous are taken into account.
 */
import { index as indexVar } from '../../ir/build.js'
import { dtypeInfo } from '../../ir/dtype.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import { resolveDType } from '../../ir/instance.js'
import type { Kernel } from '../../ir/kernel.js'
import { printExpr } from '../../ir/print.js'
import { operands, substitute } from '../../ir/walk.js'
import { offsetOf } from '../access/access.js'
import { strideAlong } from '../access/stride.js'
import { passStatementOf } from '../constructs/index.js'
import { walkOf } from '../divided/divided_program.js'
import { type MappedKernel, stepsOf } from '../mapped.js'
import { rowExprs } from '../normalise/normal.js'
import { statementsOf } from '../normalise/passes.js'
import { hashOf, usesIndex } from '../normalise/rewrite.js'

/** Smallest transfer of memory in bytes. Elements further apart share no sector. */
const sectorBytes = 32

/** A strided access: neighbours of `index` are far apart in memory. */
interface Strided {
  readonly does: 'read' | 'written'
  readonly tensor: string
  readonly indices: readonly Expr[]
  readonly index: string
  readonly bytes: number
  /** True if the tensor's layout is row-major, so that neighbours of its last index are adjacent. */
  readonly isRow: boolean
}

/** Extents that facts state as numbers. */
const fixedByFacts = ({ facts }: Kernel): Readonly<Record<string, number>> =>
  Object.fromEntries(
    Object.entries(facts?.dims ?? {}).flatMap(([name, { equal }]) => (typeof equal === 'number' ? [[name, equal]] : [])),
  )

/** The last index of an access, split into a base and a constant offset. */
function placeInSector({ indices, isRow }: Strided): { readonly base: Expr | undefined; readonly place: number } {
  const last = indices.at(-1)
  if (!isRow) return { base: last, place: 0 }
  if (last?.kind === 'const') return { base: undefined, place: Number(last.value) }
  const [a, b] = last?.kind === 'call' && last.fn === 'add' ? last.args : []
  return b?.kind === 'const' ? { base: a, place: Number(b.value) } : { base: last, place: 0 }
}

/** Messages for accesses; accesses that share their sectors give one message. */
function messagesOf(accesses: readonly Strided[]): readonly string[] {
  const shared = new Map<string, { readonly first: Strided; readonly places: Set<number> }>()
  for (const access of accesses) {
    const { base, place } = placeInSector(access)
    const { does, tensor, indices, index, bytes } = access
    const sector = Math.floor((place * bytes) / sectorBytes)
    const key = [
      does,
      tensor,
      index,
      `${sector}`,
      ...[...indices.slice(0, -1), ...(base === undefined ? [] : [base])].map(hashOf),
    ]
    const known = shared.get(key.join(' ')) ?? { first: access, places: new Set() }
    known.places.add(place)
    shared.set(key.join(' '), known)
  }
  return [...shared.values()].flatMap(({ first, places }) => messageOf(first, places.size) ?? [])
}

function messageOf({ does, tensor, indices, index, bytes }: Strided, used: number): string | undefined {
  const times = sectorBytes / (bytes * used)
  if (times <= 1) return undefined
  const place = `${tensor}[${indices.map(printExpr).join(', ')}]`
  return (
    `${place} is ${does} with a stride: consecutive ${index} are far apart in memory, which moves ${sectorBytes} bytes for each ${bytes * used} that are used, ` +
    `up to ${Number(times.toFixed(1))} times the traffic; let ${index} run along the last axis of ${tensor}, or give ${tensor} a layout in which it does`
  )
}

/** A load, with the indices of the serial loops in which a thread repeats it, outermost first. */
interface RepeatedLoad {
  readonly load: ExprOf<'load'>
  readonly serial: readonly string[]
}

/** Loads of a value that a thread computes, each with the serial loops around it. @param around loops around the value */
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

/** Messages for accesses of neighbouring threads that are far apart, unless the elements of a sector are used by one thread in sequence. */
export function stridedMessages({ instance, program, axes, across, vec }: MappedKernel): readonly string[] {
  const { kernel, types } = instance
  const dims = { ...fixedByFacts(kernel), ...instance.dims }
  const found = new Map<string, Strided>()
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
    // Neighbouring threads have chunks, and one thread accesses all elements of a chunk.
    const offset = offsetOf(param, indices, dims)
    if (strideAlong(offset, index, sectorBytes / bytes / vec) !== 'far') return
    // The sector of one element holds the elements that the thread reads next.
    const innermost = serial.at(-1)
    if (innermost !== undefined && strideAlong(offset, innermost, sectorBytes / bytes) === 'near') return
    // Loops that a body contains twice differ only in the name of their index.
    const unnamed = new Map(serial.map((each, at) => [each, indexVar(`(${at})`)]))
    const key = [does, tensor, ...indices.map((each) => hashOf(substitute(each, unnamed)))].join(' ')
    if (!found.has(key)) found.set(key, { does, tensor, indices, index, bytes, isRow: param.layout.name === 'row' })
  }
  const reads = (value: Expr, index: string, around: readonly string[] = []): void => {
    for (const { load, serial } of loadsOf(value, around))
      if (usesIndex(load, index)) see('read', load.tensor, load.indices, index, serial)
  }
  if (program.kind === 'totals') {
    const { loops, reductions } = walkOf(program)
    const { index = '' } = loops.at(-1) ?? {}
    for (const value of reductions.flatMap(({ values }) => values)) reads(value, index)
  }
  const isThreads = program.kind === 'rows' && program.variants.every(({ team }) => team.kind === 'thread')
  for (const step of stepsOf({ program })) {
    if (step.kind !== 'pass' && step.kind !== 'team') continue
    const { loop } = step.kind === 'pass' ? step.pass : step
    const along = across?.index ?? (isThreads ? axes.at(-1)?.index : undefined) ?? loop.index
    const around = isThreads ? [loop.index] : []
    if (step.kind === 'team') {
      for (const value of Object.values(step.elements)) reads(value, along, around)
      continue
    }
    const { rows, statements } = step.pass
    for (const row of rows) if (row.kind !== 'loaded') for (const value of rowExprs(row)) reads(value, along, around)
    for (const s of statements) for (const value of passStatementOf(s).values(s)) reads(value, along, around)
    for (const { tensor, indices, run } of statementsOf(step.pass, 'loopStore'))
      if (run === undefined) see('written', tensor, indices, along)
  }
  return messagesOf([...found.values()])
}
