/**
 * Evaluates a mask on a whole tile of pairs. Finds the conditions on a query and a key that can be decided for a range of queries and a range of
 * keys. An operand that reads memory and depends on the query alone, or on the key alone, becomes a value of the row or of the column. A kernel
 * finds its bounds in a tile by reading all values. Places have bounds themselves. Everything else is interval arithmetic
 * (native/device/ranges.cuh); an operation that it does not cover may have any value. Runs when slots are emitted.
 *
 *   mask   documents[b, i] === documents[b, j]
 *   makes  row value documents[b, i], column value documents[b, j], and the question whether their ranges meet
 */

import { hiddenBelow } from '../ir/attention_reference.js'
import { call } from '../ir/build.js'
import type { Expr, ExprOf } from '../ir/expr.js'
import { hashOf } from '../ir/expr_hash.js'
import type { IntrinsicName } from '../ir/intrinsics.js'
import type { AttentionKernel } from '../ir/template.js'
import { freeNames, operands, visitUp } from '../ir/walk.js'

/** A score as the condition under which a pair counts, and its value if it does. */
export interface MaskedScore {
  readonly kept: Expr
  readonly condition: Expr | undefined
}

/**
 * Removes the mask from a score: `condition ? kept : low`, with `low` below every score. Conditions on the matmul result itself stay with the
 * score. So do the conditions after them, which may be valid only for pairs that they leave.
 */
export function maskedScore(score: Expr): MaskedScore {
  const [condition, kept, low] = score.kind === 'call' && score.fn === 'select' ? score.args : []
  const unmasked = { kept: score, condition: undefined }
  if (condition === undefined || kept === undefined || low?.kind !== 'const' || !(Number(low.value) <= hiddenBelow))
    return unmasked
  const all = conjuncts(condition)
  const own = all.findIndex((each) => freeNames(each).has('raw'))
  const [first, ...more] = own < 0 ? all : all.slice(0, own)
  if (first === undefined) return unmasked
  const both = (left: Expr, right: Expr): Expr => call('and', left, right)
  const [next, ...further] = own < 0 ? [] : all.slice(own)
  return {
    kept: next === undefined ? kept : call('select', further.reduce(both, next), kept, low),
    condition: more.reduce(both, first),
  }
}

const conjuncts = (condition: Expr): readonly Expr[] =>
  condition.kind === 'call' && condition.fn === 'and' ? condition.args.flatMap(conjuncts) : [condition]

/** Evaluation of a mask on a tile. */
export interface TileMask {
  /** Values of a row, over `b`, `h` and `i`, and of a column, over `b`, `h` and `j`. */
  readonly rows: readonly Expr[]
  readonly keys: readonly Expr[]
  /** The condition, with the locals `rowValue` and `keyValue` for these values, and `unknown` for a value that may be anything. */
  readonly test: Expr
}

/** Prefixes of the locals of a test; a number follows. */
export const tileLocals = { row: 'row value ', key: 'key value ', unknown: 'unknown' } as const

type Sides = Pick<AttentionKernel, 'tensors' | 'batch' | 'heads' | 'queries' | 'keys'>

/** Largest number of values of rows, and of columns, whose bounds a kernel finds. With more, finding them costs more than it saves. */
const mostValues = 4
/** Longest condition that is evaluated on tiles, in operations. Shared subexpressions are written out. */
const longestTest = 200
/** Lower bound of the places in a tile: remainders by less take all values in it. */
const shortest = 16

/** @returns undefined for a condition of which no part can be decided on a tile of any size */
export function tileMaskOf(condition: Expr, kernel: Sides): TileMask | undefined {
  if (sizeOf(condition) > longestTest) return undefined
  const [rows, keys] = [new Map<string, Expr>(), new Map<string, Expr>()]
  const exact = exactIn(condition, kernel)
  const value = (side: 'row' | 'key', expr: Expr): Expr => {
    const values = side === 'row' ? rows : keys
    const key = hashOf(expr)
    if (!values.has(key) && values.size === mostValues) return unknown(expr)
    if (!values.has(key)) values.set(key, expr)
    return { kind: 'local', type: expr.type, name: `${tileLocals[side]}${[...values.keys()].indexOf(key)}` }
  }
  const done = new Map<Expr, Expr>()
  const go = (expr: Expr): Expr => {
    const known = done.get(expr) ?? made(expr)
    done.set(expr, known)
    return known
  }
  const made = (expr: Expr): Expr => {
    const side = sideOf(expr)
    if (exact.has(expr) && side === 'none') return expr
    if (exact.has(expr) && (side === 'row' || side === 'key') && reads(expr)) return value(side, expr)
    if (expr.kind === 'index') return expr
    return expr.kind === 'call' ? combined(expr, expr.args.map(go)) : unknown(expr)
  }
  const test = go(condition)
  if (isUnknown(test)) return undefined
  return { rows: [...rows.values()], keys: [...keys.values()], test }
}

const unknown = ({ type }: Expr): Expr => ({ kind: 'local', type, name: tileLocals.unknown })
export const isUnknown = (expr: Expr): boolean => expr.kind === 'local' && expr.name === tileLocals.unknown

/** The places of a pair that an expression depends on. */
function sideOf(expr: Expr): 'row' | 'key' | 'both' | 'none' {
  const names = freeNames(expr)
  if (names.has('i')) return names.has('j') ? 'both' : 'row'
  return names.has('j') ? 'key' : 'none'
}

function reads(expr: Expr): boolean {
  let found = false
  visitUp(expr, ({ kind }) => {
    found ||= kind === 'load'
  })
  return found
}

/** Operations on integers and comparisons that are exact, on any thread and at any place. */
const exactCalls: ReadonlySet<IntrinsicName> = new Set([
  ...([
    'add',
    'sub',
    'mul',
    'idiv',
    'mod',
    'neg',
    'abs',
    'minimum',
    'maximum',
    'bitAnd',
    'bitOr',
    'bitXor',
    'wrappingAdd',
    'wrappingMul',
    'shiftRightUnsigned',
    'shiftLeft',
    'shiftRight',
  ] as const),
  ...(['lt', 'le', 'gt', 'ge', 'eq', 'ne', 'and', 'or', 'not', 'select', 'toFloat'] as const),
])

/**
 * Parts of an expression that may be computed where the mask itself would not compute them. They read nothing outside of a tensor, divide by
 * nothing that may be 0, and are not rounded, so that their values are the same there.
 */
function exactIn(condition: Expr, kernel: Sides): ReadonlySet<Expr> {
  const exact = new Set<Expr>()
  visitUp(condition, (expr) => {
    if (isExact(expr, exact, kernel)) exact.add(expr)
  })
  return exact
}

function isExact(expr: Expr, exact: ReadonlySet<Expr>, kernel: Sides): boolean {
  switch (expr.kind) {
    case 'const':
    case 'dim':
    case 'attr':
    case 'index':
      return true
    case 'load':
      return isInside(expr, kernel)
    case 'call': {
      const isWhole = expr.type !== 'f32' || expr.fn === 'toFloat'
      const divisor = expr.fn === 'idiv' || expr.fn === 'mod' ? expr.args[1] : undefined
      const divides = divisor === undefined || (divisor.kind === 'const' && Number(divisor.value) !== 0)
      return isWhole && divides && exactCalls.has(expr.fn) && expr.args.every((arg) => exact.has(arg))
    }
    default:
      return false
  }
}

/** True if every index of a load runs over exactly the dimension of the tensor's axis. */
export function isInside({ tensor, indices }: ExprOf<'load'>, { tensors, batch, heads, queries, keys }: Sides): boolean {
  const counted: Readonly<Record<string, Expr>> = { b: batch, h: heads, i: queries, j: keys }
  const dims = tensors.find(({ name }) => name === tensor)?.dims ?? []
  return indices.every((place, axis) => {
    const extent = place.kind === 'index' ? counted[place.name] : undefined
    return extent?.kind === 'dim' && extent.name === dims[axis]
  })
}

/** A call whose operands may be unknown. */
function combined(expr: ExprOf<'call'>, args: readonly Expr[]): Expr {
  const { fn } = expr
  const [a, b, c] = args
  if (a === undefined) return unknown(expr)
  const whole = { ...expr, args }
  switch (fn) {
    case 'and':
    case 'or':
      return args.every(isUnknown) ? unknown(expr) : whole
    case 'select':
      return b !== undefined && c !== undefined && (isUnknown(b) || isUnknown(c)) ? unknown(expr) : whole
    case 'mod':
      // A remainder by a number smaller than the tile takes every value, if the dividend varies along both sides of the tile.
      if (b?.kind === 'const' && Math.abs(Number(b.value)) <= shortest && sideOf(expr) === 'both') return unknown(expr)
      return args.some(isUnknown) ? unknown(expr) : whole
    default:
      return rangedCalls.has(fn) && expr.args.every(({ type }) => type !== 'f32' || comparisons.has(fn)) && !args.some(isUnknown)
        ? whole
        : unknown(expr)
  }
}

const comparisons: ReadonlySet<IntrinsicName> = new Set(['lt', 'le', 'gt', 'ge', 'eq', 'ne'])

/** Calls implemented by ranges.cuh. */
const rangedCalls: ReadonlySet<IntrinsicName> = new Set([
  ...comparisons,
  ...(['add', 'sub', 'mul', 'idiv', 'neg', 'abs', 'minimum', 'maximum', 'not', 'toFloat'] as const),
])

/** Number of nodes of an expression; a shared node counts once per use. */
function sizeOf(expr: Expr): number {
  const sizes = new Map<Expr, number>()
  visitUp(expr, (node) => {
    sizes.set(
      node,
      operands(node).reduce((sum, operand) => sum + (sizes.get(operand) ?? 0), 1),
    )
  })
  return sizes.get(expr) ?? 0
}
