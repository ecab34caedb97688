/**
 * Monoids that authors declare: several fields, their identity, and the combination of two adjacent parts of a row, left and right. Each use checks
 * the monoid laws on samples: the body computes elements from random inputs.
 */
import { lawError } from '../verify/tolerance.js'
import { constant } from './build.js'
import { emptyEnv, evaluateExpr } from './evaluate_expr.js'
import type { Expr } from './expr.js'
import { mapOperands } from './map_operands.js'

export interface MonoidField {
  readonly name: string
  readonly type: 'f32' | 'i32'
  /** Neutral element of `combine`. */
  readonly identity: number
}

export interface UserMonoid {
  readonly fields: readonly MonoidField[]
  /** Names of the fields of the left and of the right part in `combine`: locals of that expression. */
  readonly left: readonly string[]
  readonly right: readonly string[]
  /** One expression per field, over those locals and constants. */
  readonly combine: readonly Expr[]
  /** Set where the first field is a maximum and the others are sums of exponentials that are shifted by it (src/schedule/rows/one_pass.ts). */
  readonly shift?: Shift
}

/** Scaling of the sums of a part to a larger maximum. */
export interface Shift {
  /** Local that names the larger maximum. */
  readonly top: string
  /** One expression per sum, over that local and those of the left part. */
  readonly scaled: readonly Expr[]
}

export type Fields = readonly number[]

export const identityOf = ({ fields }: UserMonoid): Fields => fields.map(({ identity }) => identity)

/** Combines two adjacent parts, in double precision. */
export function combined({ left, right, combine }: UserMonoid, a: Fields, b: Fields): Fields {
  const env = emptyEnv({})
  for (const [i, name] of left.entries()) env.values.set(name, a[i] ?? Number.NaN)
  for (const [i, name] of right.entries()) env.values.set(name, b[i] ?? Number.NaN)
  return combine.map((expr) => Number(evaluateExpr(expr, env)))
}

/** A part with a maximum that is at least its own, and its sums scaled to it, in double precision. */
export function scaledTo({ left }: UserMonoid, { top, scaled }: Shift, part: Fields, to: number): Fields {
  const env = emptyEnv({})
  for (const [i, name] of left.entries()) env.values.set(name, part[i] ?? Number.NaN)
  env.values.set(top, to)
  return [to, ...scaled.map((expr) => Number(evaluateExpr(expr, env)))]
}

/** Inclusive prefix combinations of a row; the last one is the total. */
export function scanFields(monoid: UserMonoid, length: number, element: (at: number) => Fields): readonly Fields[] {
  let total = identityOf(monoid)
  return Array.from({ length }, (_, at) => {
    total = combined(monoid, total, element(at))
    return total
  })
}

const samples = 200

/**
 * Law that a monoid breaks over elements of a body, with an example; undefined if samples break none. `values` are the fields of the
 * element at `index`; `isOrdered` if the order of elements is preserved.
 */
export function brokenLaw(monoid: UserMonoid, values: readonly Expr[], index: string, isOrdered: boolean): string | undefined {
  const random = generator()
  let at = 0
  const draw = (): Fields => drawn(values, index, at++, random)
  const empty = identityOf(monoid)
  const join = (a: Fields, b: Fields): Fields => combined(monoid, a, b)
  for (let i = 0; i < samples; i++) {
    const [a, b, c, d] = [draw(), draw(), draw(), draw()]
    const pair = join(a, b)
    if (!same(join(empty, pair), pair) || !same(join(pair, empty), pair))
      return `${text(monoid, empty)} is not the identity: with ${text(monoid, pair)} it gives ${text(monoid, join(empty, pair))} and ${text(monoid, join(pair, empty))}`
    const [early, late] = [join(join(pair, c), d), join(pair, join(c, d))]
    if (!same(early, late))
      return `it is not associative: four elements, combined from the left and in pairs, give ${text(monoid, early)} and ${text(monoid, late)}`
    if (!isOrdered && !same(pair, join(b, a)))
      return `it is not commutative: ${text(monoid, a)} and ${text(monoid, b)} give ${text(monoid, pair)}, in the other order ${text(monoid, join(b, a))}`
  }
  return undefined
}

const text = ({ fields }: UserMonoid, values: Fields): string =>
  `{ ${fields.map(({ name }, i) => `${name}: ${Number((values[i] ?? Number.NaN).toPrecision(6))}`).join(', ')} }`

const same = (a: Fields, b: Fields): boolean =>
  a.every((value, i) => {
    const other = b[i] ?? Number.NaN
    if (Object.is(value, other) || value === other) return true
    const size = Math.max(1, ...[...a, ...b].filter(Number.isFinite).map(Math.abs))
    return Math.abs(value - other) <= lawError * size
  })

/** An element that a body computes from random inputs: equal leaves get the same value. */
function drawn(values: readonly Expr[], index: string, at: number, random: () => number): Fields {
  const env = emptyEnv({})
  const known = new Map<string, Expr>()
  const leaf = (expr: Expr): Expr => {
    const key = JSON.stringify(expr, (name, value: unknown) => (name === 'span' ? undefined : value))
    const made = known.get(key) ?? constant(expr.type, sample(expr.type, random))
    known.set(key, made)
    return made
  }
  const filled = (expr: Expr): Expr => {
    if (expr.kind === 'const') return expr
    if (expr.kind === 'index' && expr.name === index) return constant('i32', at)
    return expr.kind === 'call' ? mapOperands(expr, filled) : leaf(expr)
  }
  return values.map((value) => Number(evaluateExpr(filled(value), env)))
}

function sample(type: Expr['type'], random: () => number): number | boolean {
  if (type === 'bool') return random() < 0.5
  // A small range makes equal values frequent, so that ties are tested.
  if (type === 'i32') return Math.floor(random() * 8)
  return Math.floor(random() * 17 - 8) / 4
}

/** Numbers in [0, 1), the same in every run. */
function generator(): () => number {
  let state = 12345
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}
