/**
 * Accuracy that the results of a kernel need of each of its operations: the largest error that their storage types hide. Errors are followed
 * backward, from the stores to the operations that the stored values depend on. A value that decides something (a comparison, an index, a
 * rounding to an integer other than that of the store, a ranking) is needed exactly, and so is one that a recurrence or an author's monoid takes.
 */
import { unitRoundoff } from '../../verify/tolerance.js'
import type { Stmt } from '../constructs/index.js'
import { type DType, dtypeInfo } from '../dtype.js'
import type { Expr, ExprOf } from '../expr.js'
import { fastForm } from '../forms.js'
import type { Kernel } from '../kernel.js'
import { operands, stmtExprs, visitUp } from '../walk.js'
import { neverNegative } from './signs.js'

/** Errors of a value that its readers do not see. */
export interface Need {
  /** Largest relative error. */
  readonly relative: number
  /** Largest relative error of a term of either sign: a sum may be much smaller than its terms. */
  readonly cancelled: number
  /** True if 0 may replace numbers below the normal range of float32. */
  readonly flushes: boolean
  /** True if it is rounded to an integer in any case: a store as int8 does so itself. */
  readonly rounds: boolean
}

const exactly: Need = { relative: 0, cancelled: 0, flushes: false, rounds: false }
const nothing: Need = { relative: Number.POSITIVE_INFINITY, cancelled: Number.POSITIVE_INFINITY, flushes: true, rounds: true }

/** The needs of both readers of a value. */
export const both = (a: Need, b: Need): Need => ({
  relative: Math.min(a.relative, b.relative),
  cancelled: Math.min(a.cancelled, b.cancelled),
  flushes: a.flushes && b.flushes,
  rounds: a.rounds && b.rounds,
})

const rounding = unitRoundoff.f32
/** Share of a store's rounding that the errors of all fast forms together may reach. */
const room = 1 / 8
/** Roundings that an elementwise result has in any case, relative to the largest of its terms (the table of tolerances allows twice these). */
const elementwiseRoundings = 4
/** Half the distance of int8 values from the largest of them. */
const int8Rounding = 2 ** -8
/** Largest size of an exponent whose result is neither 0 nor infinite: an error of the exponent counts that many times. */
const largestExponent = 128
/** Added to a number of at least this size, those below the normal range change nothing. */
const absorbing = 2 ** -100

/** Need of a value that is stored in a type. */
export function needOfStore(dtype: DType): Need {
  if (dtype === 'f32' || (dtype !== 'i8' && dtypeInfo[dtype].scalar !== 'f32')) return exactly
  const relative = room * (dtype === 'i8' ? int8Rounding : unitRoundoff[dtype])
  return { relative, cancelled: elementwiseRoundings * rounding, flushes: dtype !== 'bf16', rounds: dtype === 'i8' }
}

/** Needs of the expressions of a kernel; those that nothing reads are absent. @param ofOutput need of a stored output, by name */
export function needsOf(kernel: Kernel, ofOutput: (tensor: string) => Need): ReadonlyMap<Expr, Need> {
  return new Needs(kernel, ofOutput).run()
}

class Needs {
  readonly #kernel: Kernel
  readonly #ofOutput: (tensor: string) => Need
  readonly #isPositive: (expr: Expr) => boolean
  /** Needs of named values, by name. */
  readonly #named = new Map<string, Need>()
  readonly #found = new Map<Expr, Need>()

  constructor(kernel: Kernel, ofOutput: (tensor: string) => Need) {
    this.#kernel = kernel
    this.#ofOutput = ofOutput
    this.#isPositive = neverNegative(kernel)
  }

  run(): ReadonlyMap<Expr, Need> {
    for (const stmt of [...this.#kernel.body].reverse()) {
      const value = this.#valueOf(stmt)
      for (const expr of stmtExprs(stmt)) this.#follow(expr, expr === value?.expr ? value.need : exactly)
    }
    return this.#found
  }

  /** The value of a statement that need not be exact. */
  #valueOf(stmt: Stmt): { readonly expr: Expr; readonly need: Need } | undefined {
    switch (stmt.kind) {
      case 'store':
      case 'storeRow':
        return { expr: stmt.value, need: this.#ofOutput(stmt.tensor) }
      case 'let':
      case 'row':
        return { expr: stmt.value, need: this.#named.get(stmt.name) ?? nothing }
      case 'reduce':
      case 'scan':
        return { expr: stmt.value, need: this.#reduced(stmt.monoid, stmt.value, this.#named.get(stmt.name) ?? nothing) }
      default:
        return undefined
    }
  }

  /** Follows an error from an expression to its operands, each after all of its readers. */
  #follow(root: Expr, need: Need): void {
    const nodes: Expr[] = []
    visitUp(root, (node) => nodes.push(node))
    const own = new Map<Expr, Need>([[root, need]])
    for (const node of nodes.reverse()) {
      const needed = node.type === 'f32' ? (own.get(node) ?? exactly) : exactly
      this.#found.set(node, both(this.#found.get(node) ?? nothing, needed))
      const name = node.kind === 'local' ? node.name : node.kind === 'element' ? node.row : undefined
      if (name !== undefined) this.#named.set(name, both(this.#named.get(name) ?? nothing, needed))
      const of = this.#ofOperands(node, needed)
      operands(node).forEach((operand, i) => {
        own.set(operand, both(own.get(operand) ?? nothing, of[i] ?? exactly))
      })
    }
  }

  #ofOperands(node: Expr, need: Need): readonly Need[] {
    if (node.kind === 'fold') return [exactly, this.#reduced(node.monoid, node.value, need)]
    return node.kind === 'call' && node.type === 'f32' ? this.#ofArguments(node, afterOwn(node, need)) : []
  }

  /** Need of the elements of a reduction. */
  #reduced(monoid: string, value: Expr, need: Need): Need {
    if (value.type !== 'f32') return exactly
    if (monoid === 'max' || monoid === 'min') return { ...need, flushes: false, rounds: false }
    return monoid === 'sum' ? this.#term([value], need) : exactly
  }

  /** Need of the terms of a sum, of which those of one sign do not cancel. */
  #term(terms: readonly Expr[], need: Need, isDifference = false): Need {
    if (!isDifference && terms.every(this.#isPositive)) return { ...need, flushes: false, rounds: false }
    const relative = Math.min(need.relative, need.cancelled)
    return { relative, cancelled: relative, flushes: false, rounds: false }
  }

  #ofArguments({ fn, args }: ExprOf<'call'>, need: Need): readonly Need[] {
    const shares = args.filter(mayErr).length
    const part = scaled(need, Math.max(1, shares))
    switch (fn) {
      case 'add':
      case 'sub': {
        const term = this.#term(args, need, fn === 'sub')
        return args.map((_, i) => ({ ...term, flushes: absorbs(args[1 - i]) }))
      }
      case 'mul':
        return [part, part]
      case 'div':
        return [part, { ...part, cancelled: 0 }]
      case 'square':
        return [scaled(need, 2)]
      case 'neg':
      case 'abs':
        return [need]
      case 'maximum':
      case 'minimum':
        return args.map(() => ({ ...need, flushes: false }))
      case 'select':
        return [exactly, need, need]
      case 'round':
        return [need.rounds ? need : exactly]
      case 'sqrt':
      case 'rsqrt':
        return [{ ...need, cancelled: 0, flushes: false, rounds: false }]
      case 'exp':
      case 'exp2':
        return [{ ...scaled(need, largestExponent), cancelled: 0 }]
      case 'tanh':
      case 'erf':
        return [scaled(need, 2)]
      default:
        return args.map(() => exactly)
    }
  }
}

/** The need that is left for operands after the error of an operation's fast form. */
function afterOwn({ fn }: ExprOf<'call'>, need: Need): Need {
  const error = errorOf(fn)
  const left = (allowed: number): number => (error <= allowed ? allowed - error : allowed)
  return { ...need, relative: left(need.relative), cancelled: left(need.cancelled) }
}

/** Relative error of the fast form of a function; infinite if it is not relative to the result, 0 if there is none. */
export function errorOf(fn: ExprOf<'call'>['fn']): number {
  const form = fastForm(fn)
  return form === undefined ? 0 : (form.most ?? Number.POSITIVE_INFINITY) * rounding
}

/** The need of one of several factors. */
const scaled = (need: Need, parts: number): Need => ({
  relative: need.relative / parts,
  cancelled: need.cancelled / parts,
  flushes: false,
  rounds: false,
})

/** False for numbers that are read as they are. */
const mayErr = ({ kind }: Expr): boolean => kind === 'call' || kind === 'local' || kind === 'element' || kind === 'fold'

const absorbs = (other: Expr | undefined): boolean => other?.kind === 'const' && Math.abs(Number(other.value)) >= absorbing
