/**
 * Simplifies index arithmetic in a chunk that begins at a multiple of its width. Quotients and remainders of an element's index are expressed by
 * the chunk's first element, or by the element's place in the chunk, which an unrolled loop knows. Runs while a pass is emitted, when widths are
 * known.
 *
 *     c = c0 + i, chunks of 8:   scales[c / 128]   becomes   scales[c0 / 128], the same for the whole chunk
 *                                c % 128           becomes   c0 % 128 + i
 *                                (c % 8) * 4       becomes   i * 4
 *     rows of whole chunks, s a multiple of 8:
 *                                gamma[c / s]      becomes   gamma[c0 / s]
 */
import { call, i32, index as indexVar, local } from '../../ir/build.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import { hashOf } from '../../ir/expr_hash.js'
import { mapOperands, visit } from '../../ir/walk.js'
import { numberOf } from '../access/access.js'
import { isMultiple } from '../access/multiples.js'
import { isHostExpr } from './host_expr.js'
import { usesIndex } from './rewrite.js'

export interface AlignedChunk {
  /** The index that runs over the elements. */
  readonly index: string
  /** Index variables for the chunk's first element and for an element's place in the chunk. */
  readonly first: string
  readonly place: string
  /** Elements per chunk, one entry for each width that the source is compiled for. */
  readonly widths: readonly number[]
  /** Rows that are the same for all elements of a chunk, with the scalars that hold them. */
  readonly same: ReadonlyMap<string, string>
  /** Structural hashes of run-time numbers that every width divides; none by default. */
  readonly multiples?: ReadonlySet<string>
}

/** Run-time numbers that an integer divides the index of its loop by. A chunk lies in one part of the loop if they are multiples of its width. */
export function divisorsIn(e: Expr, loop: string): readonly Expr[] {
  const found: Expr[] = []
  visit(e, (node) => {
    const [a, b] = node.kind === 'call' && (node.fn === 'idiv' || node.fn === 'mod') ? node.args : []
    if (a?.kind === 'index' && a.name === loop && b !== undefined && b.kind !== 'const' && isHostExpr(b)) found.push(b)
  })
  return found
}

/** Behaviour of a value along a chunk. */
type Folded =
  /** The same for all elements. */
  | { readonly kind: 'same'; readonly expr: Expr }
  /** `first` plus the place; `first` is a multiple of every width and not negative. */
  | { readonly kind: 'moving'; readonly expr: Expr; readonly first: Expr }
  /** Depends on the place alone. */
  | { readonly kind: 'place'; readonly expr: Expr }
  | { readonly kind: 'other'; readonly expr: Expr }

/** The expression of one element, with the values that its chunk determines folded. */
export const inAlignedChunk = (e: Expr, chunk: AlignedChunk): Expr => folder(chunk)(e).expr

/** True if an expression has one value for all elements of a chunk, and another value for the next chunk. */
export const isOfChunk = (e: Expr, chunk: AlignedChunk): boolean => {
  const { kind, expr } = folder(chunk)(e)
  return kind === 'same' && usesIndex(expr, chunk.first)
}

function folder(chunk: AlignedChunk): (e: Expr) => Folded {
  const done = new Map<Expr, Folded>()
  const fold = (e: Expr): Folded => {
    const known = done.get(e)
    if (known !== undefined) return known
    const folded = foldNode(e, chunk, fold)
    done.set(e, folded)
    return folded
  }
  return fold
}

function foldNode(e: Expr, chunk: AlignedChunk, fold: (e: Expr) => Folded): Folded {
  switch (e.kind) {
    case 'index':
      if (e.name === chunk.place) return { kind: 'place', expr: e }
      return e.name === chunk.index ? { kind: 'moving', expr: e, first: indexVar(chunk.first) } : { kind: 'same', expr: e }
    case 'element':
      if (chunk.same.has(e.row)) return { kind: 'same', expr: local(chunk.same.get(e.row) ?? e.row, e.type) }
      // An element of a row of the pass is always read at the loop's own index.
      return ofOperands(e, fold)
    case 'fold':
      return { kind: usesIndex(e, chunk.index) ? 'other' : 'same', expr: e }
    case 'call': {
      const folded = e.args.map(fold)
      return foldCall(e, folded, chunk) ?? ofOperands(e, fold)
    }
    default:
      return ofOperands(e, fold)
  }
}

/** Classification of a computed value: the property that all of its operands share. */
function ofOperands(e: Expr, fold: (e: Expr) => Folded): Folded {
  const kinds = new Set<Folded['kind']>()
  const expr = mapOperands(e, (operand) => {
    const folded = fold(operand)
    if (operand.kind !== 'const') kinds.add(folded.kind)
    return folded.expr
  })
  if (kinds.size === 0 || (kinds.size === 1 && kinds.has('same'))) return { kind: 'same', expr }
  return { kind: kinds.size === 1 && kinds.has('place') && e.kind === 'call' ? 'place' : 'other', expr }
}

/** Sums, quotients and remainders of a moving index; undefined for anything else. */
function foldCall(e: ExprOf<'call'>, folded: readonly Folded[], chunk: AlignedChunk): Folded | undefined {
  const { widths, place } = chunk
  const [a, b] = folded
  if (a === undefined || b === undefined || e.type !== 'i32') return undefined
  if (e.fn === 'add') {
    const [moving, rest] = b.kind === 'moving' ? [b, a] : [a, b]
    if (moving.kind !== 'moving' || rest.kind !== 'same') return undefined
    if (!isNotNegative(rest.expr) || !widths.every((width) => isMultiple(rest.expr, width))) return undefined
    return { kind: 'moving', expr: call('add', a.expr, b.expr), first: call('add', moving.first, rest.expr) }
  }
  if (a.kind === 'moving' && chunk.multiples?.has(hashOf(e.args[1] ?? e)) === true) return inPart(e.fn, a.first, b.expr, place)
  const by = divisorOf(e)
  if (a.kind !== 'moving' || by === undefined) return undefined
  return by.remains ? remainder(a.first, by.of, widths, place) : quotient(a.first, by.of, widths, place)
}

/** Quotient or remainder by a number that all widths divide. */
function inPart(fn: ExprOf<'call'>['fn'], first: Expr, of: Expr, place: string): Folded | undefined {
  if (fn === 'idiv') return { kind: 'same', expr: call('idiv', first, of) }
  if (fn !== 'mod') return undefined
  const before = call('mod', first, of)
  return { kind: 'moving', expr: call('add', before, indexVar(place)), first: before }
}

/** Constant divisor of an integer operation, and whether the operation takes the remainder. */
function divisorOf({ fn, args }: ExprOf<'call'>): { readonly of: number; readonly remains: boolean } | undefined {
  const number = args[1] === undefined ? undefined : numberOf(args[1])
  if (number === undefined || number < 0) return undefined
  if ((fn === 'idiv' || fn === 'mod') && number > 0) return { of: number, remains: fn === 'mod' }
  if (fn === 'shiftRight' && number < 31) return { of: 2 ** number, remains: false }
  return fn === 'bitAnd' && Number.isInteger(Math.log2(number + 1)) ? { of: number + 1, remains: true } : undefined
}

function quotient(first: Expr, of: number, widths: readonly number[], place: string): Folded | undefined {
  const whole = call('idiv', first, i32(of))
  if (widths.every((width) => of % width === 0)) return { kind: 'same', expr: whole }
  if (!widths.every((width) => width % of === 0)) return undefined
  return { kind: 'other', expr: call('add', whole, call('idiv', indexVar(place), i32(of))) }
}

function remainder(first: Expr, of: number, widths: readonly number[], place: string): Folded | undefined {
  const own = indexVar(place)
  if (widths.every((width) => width % of === 0))
    return { kind: 'place', expr: widths.every((width) => width === of) ? own : call('mod', own, i32(of)) }
  if (!widths.every((width) => of % width === 0)) return undefined
  const before = call('mod', first, i32(of))
  return { kind: 'moving', expr: call('add', before, own), first: before }
}

/** True if an integer is known not to be negative. Quotients of negative integers round the other way. */
const isNotNegative = (e: Expr): boolean =>
  e.kind === 'index' ||
  e.kind === 'dim' ||
  (e.kind === 'const' && Number(e.value) >= 0) ||
  (e.kind === 'call' && (e.fn === 'add' || e.fn === 'mul') && e.args.every(isNotNegative))
