/**
 * Instructions of expressions. Those of functions are counted in machine code: a kernel that loads its arguments, calls the function and stores the
 * result, compiled by nvcc 13.0 for sm_90, less the same kernel without the call; instructions on paths of rare arguments are not counted.
 */
import { type DType, dtypeInfo } from '../ir/dtype.js'
import type { Expr, ExprOf } from '../ir/expr.js'
import { hashOf } from '../ir/expr_hash.js'
import type { IntrinsicName } from '../ir/intrinsics.js'
import { operands } from '../ir/walk.js'
import { iterations } from './extents.js'
import type { Sizes } from './sizes.js'

/** Instructions of functions that are more than one. */
const instructions: Readonly<Partial<Record<IntrinsicName, number>>> = {
  div: 13,
  idiv: 25,
  mod: 23,
  sqrt: 13,
  rsqrt: 4,
  exp: 10,
  exp2: 23,
  expm1: 29,
  log: 28,
  log2: 50,
  log10: 29,
  log1p: 33,
  sin: 30,
  cos: 30,
  tanh: 17,
  erf: 12,
  gelu: 10,
  pow: 80,
  uniform: 67,
}

/** Those of fast forms. `flushed` needs no scaling of small results. */
const fastInstructions: Readonly<Partial<Record<IntrinsicName, number>>> = {
  div: 8,
  sqrt: 4,
  exp: 5,
  exp2: 4,
  log: 5,
  log2: 4,
  log10: 5,
  sin: 10,
  cos: 10,
}
const flushedInstructions = 2

/** A quotient by a number that all elements share: its reciprocal is computed once. */
const byShared = 7

/** Quotients and remainders by a constant are multiplications and shifts. */
const byConstant = 4

/** Those that are counted from one element of a chunk to the next. */
const byCounting = 2

/** Instructions of a call, without those of its arguments. A multiplication whose result is added is one instruction with the addition. */
function ofCall({ fn, args, form }: ExprOf<'call'>, counts: boolean): number {
  if (form === 'flushed') return flushedInstructions
  if (form === 'fast') return fastInstructions[fn] ?? instructions[fn] ?? 1
  if ((fn === 'idiv' || fn === 'mod') && args[1]?.kind === 'const') return byConstant
  if ((fn === 'idiv' || fn === 'mod') && counts) return byCounting
  const isFused = (fn === 'add' || fn === 'sub') && args.some((arg) => arg.kind === 'call' && arg.fn === 'mul')
  return isFused ? 0 : (instructions[fn] ?? 1)
}

/** Instructions that convert a loaded element to the type of arithmetic, and one of a pair back. */
export const converting = (dtype: DType): number => (dtypeInfo[dtype].bytes < 4 ? 1 : 0)

/** Instructions of a load or store of its own, and of each index of its place. */
export const accessInstructions = 2
export const indexInstructions = 1

/** Context of an expression whose instructions are counted. */
export interface Counting {
  /** Instructions of a load, without those of its indices. */
  readonly loaded: (load: ExprOf<'load'>) => number
  /** Indices whose loops enclose elements that share a value: it is computed once for all of them. */
  readonly shared: ReadonlySet<string>
  /** Share of an instruction that an element pays for such a value. */
  readonly once: number
  /** True if quotients and remainders of places are counted (src/loop/passes/count_places.ts). */
  readonly counts?: boolean
}

/**
 * Instructions of an expression for one element. Equal values count once, and a reduction inside of the element as often as it runs. Values that
 * do not differ between the elements of a thread count with a share.
 */
export function instructionsOf(expr: Expr, sizes: Sizes, { loaded, shared, once, counts = false }: Counting): number {
  const varying = new Map<string, boolean>()
  let [total, times] = [0, 1]
  /** Adds the instructions of a node, and returns whether it differs between elements. */
  const count = (node: Expr): boolean => {
    const key = hashOf(node)
    const known = varying.get(key)
    if (known !== undefined) return known
    const varies = node.kind === 'fold' ? repeated(node) : countPlain(node)
    varying.set(key, varies)
    return varies
  }
  const countPlain = (node: Expr): boolean => {
    const parts = operands(node).map(count)
    const varies = parts.includes(true) || node.kind === 'element' || (node.kind === 'index' && !shared.has(node.name))
    const isShared = node.kind === 'call' && node.fn === 'div' && parts[1] === false
    const call = node.kind === 'call' && !isShared ? ofCall(node, counts) : 0
    const own = node.kind === 'load' ? loaded(node) : isShared ? byShared : call
    total += own * times * (varies ? 1 : once)
    return varies
  }
  const repeated = (node: ExprOf<'fold'>): boolean => {
    count(node.length)
    const before = times
    times *= iterations(node.length, sizes)
    count(node.value)
    total += loopInstructions * times
    times = before
    return true
  }
  count(expr)
  return total
}

/** Instructions of a loop for each of its iterations, and of the combination in it. */
const loopInstructions = 2
