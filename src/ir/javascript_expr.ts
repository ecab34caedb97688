/**
 * JavaScript source of single expressions: one function per kind of node, over the state of one compilation (src/ir/javascript.ts).
 */
import type { Expr, ExprOf } from './expr.js'
import { type IntrinsicName, intrinsic } from './intrinsics.js'
import { monoid } from './monoids.js'
import { freeNames, visit } from './walk.js'

/**
 * `double`: in doubles, as bodies compute. `single`: every float of an expression is rounded to float32 where it is computed, as on a device.
 * `strayed`: the caller rounds to float32, possibly in another way, as a device does that adds in another order.
 */
export type Precision = 'double' | 'single' | 'strayed'

interface Numbering {
  readonly of: (name: string) => number
  readonly names: () => readonly string[]
}

/** Numbers names in the order of their first use. */
function numbering(): Numbering {
  const known = new Map<string, number>()
  return {
    of: (name) => {
      const number = known.get(name) ?? known.size
      known.set(name, number)
      return number
    },
    names: () => [...known.keys()],
  }
}

/** State of one compilation. */
export interface Compilation {
  readonly precision: Precision
  readonly values: Numbering
  readonly rows: Numbering
  readonly tensors: Numbering
  readonly dims: Numbering
  readonly attrs: Numbering
  readonly ranks: Map<string, number>
  readonly functions: string[]
  /** Variables of functions that cache their last value. */
  readonly caches: string[]
  /** Functions of the tables of intrinsics and monoids, by their names in the source. */
  readonly imports: Map<string, string>
  /** Sources of the expressions so far. */
  readonly sources: Map<Expr, string>
}

export const newCompilation = (precision: Precision): Compilation => ({
  precision,
  values: numbering(),
  rows: numbering(),
  tensors: numbering(),
  dims: numbering(),
  attrs: numbering(),
  ranks: new Map(),
  functions: [],
  caches: [],
  imports: new Map(),
  sources: new Map(),
})

const literal = (value: number | boolean): string => (Object.is(value, -0) ? '(-0)' : `(${value})`)

export const sourceOf = ({ sources }: Compilation, expr: Expr): string => sources.get(expr) ?? 'undefined'

/** Adds a function with that body; returns a call of it. */
export function calledFunction({ functions }: Compilation, body: string): string {
  functions.push(`function f${functions.length}() { ${body} }`)
  return `f${functions.length - 1}()`
}

function imported({ imports }: Compilation, name: string, from: string): string {
  imports.set(name, from)
  return name
}

/** Source of an expression whose operands have theirs. */
export function compileNode(to: Compilation, expr: Expr): string {
  switch (expr.kind) {
    case 'const':
      return rounded(to, expr, literal(expr.value))
    case 'dim':
      return `d${to.dims.of(expr.name)}`
    case 'attr':
      return rounded(to, expr, `a${to.attrs.of(expr.name)}`)
    case 'index':
    case 'local':
      return `v${to.values.of(expr.name)}`
    case 'element':
      return element(to, expr)
    case 'load':
      return load(to, expr)
    case 'call': {
      const args = expr.args.map((arg) => sourceOf(to, arg))
      return rounded(to, expr, call(to, expr.fn, args))
    }
    case 'fold':
      return rounded(to, expr, fold(to, expr))
  }
}

function rounded(to: Compilation, expr: Expr, made: string): string {
  const { precision } = to
  if (precision === 'double' || expr.type !== 'f32') return made
  // Constants and attributes are rounded once, by the host.
  const isGiven = expr.kind === 'const' || expr.kind === 'attr'
  return precision === 'single' || isGiven ? `Math.fround(${made})` : `${imported(to, 'strayed', 'scope.strayed')}(${made})`
}

function element(to: Compilation, expr: ExprOf<'element'>): string {
  const number = to.rows.of(expr.row)
  const row = `r${number}`
  const outside = `scope.noElement(${number}, i, ${row})`
  return calledFunction(
    to,
    `const i = ${sourceOf(to, expr.index)}; return (i >>> 0) === i && i < ${row}.length ? ${row}[i] : ${outside}`,
  )
}

function load(to: Compilation, expr: ExprOf<'load'>): string {
  const t = to.tensors.of(expr.tensor)
  to.ranks.set(expr.tensor, expr.indices.length)
  const places = expr.indices.map((_, axis) => `i${axis}`)
  const lets = expr.indices.map((at, axis) => `i${axis} = ${sourceOf(to, at)}`)
  const inside = places.map((place, axis) => `(${place} >>> 0) === ${place} && ${place} < e${t}_${axis}`)
  const offset = places.reduce((before, place, axis) => (axis === 0 ? place : `(${before}) * e${t}_${axis} + ${place}`), '0')
  const outside = `scope.noLoad(${t}, [${places.join(', ')}])`
  const known = lets.length === 0 ? '' : `const ${lets.join(', ')}; `
  return calledFunction(to, `${known}return ${[...inside, `h${t}`].join(' && ')} ? t${t}[${offset}] : ${outside}`)
}

/** An intrinsic's symbol is its JavaScript operator, if it has one; except for integer quotients, for which JavaScript has none. */
function call(to: Compilation, fn: IntrinsicName, args: readonly string[]): string {
  const { symbol } = intrinsic(fn)
  const [a, b, c] = args
  if (fn === 'select') return `(${a} ? ${b} : ${c})`
  if (symbol === undefined || symbol === 'idiv')
    return `${imported(to, `${fn}_`, `scope.intrinsics.${fn}.evaluate`)}(${args.join(', ')})`
  return b === undefined ? `(${symbol}${a})` : `(${a} ${symbol} ${b})`
}

function fold(to: Compilation, expr: ExprOf<'fold'>): string {
  const index = `v${to.values.of(expr.index)}`
  const each = number(expr.value, sourceOf(to, expr.value))
  const length = sourceOf(to, expr.length)
  const { combine, identity } = monoid(expr.monoid)
  if (combine === undefined)
    return cached(to, expr, (give) => {
      const evaluate = imported(to, `evaluate_${expr.monoid}`, `scope.monoids.${expr.monoid}.evaluate`)
      return give(`${evaluate}(${length}, (at) => { ${index} = at; return ${each} })`)
    })
  const next =
    expr.monoid === 'sum'
      ? `total += ${each}`
      : `total = ${imported(to, `combine_${expr.monoid}`, `scope.monoids.${expr.monoid}.combine`)}(total, ${each})`
  return cached(
    to,
    expr,
    (give) =>
      `let total = ${literal(identity)}; const length = ${length}; ` +
      `for (let at = 0; at < length; at++) { ${index} = at; ${next} } ${give('total')}`,
  )
}

/**
 * A function that caches its last value for as long as the names that the expression reads keep theirs, so that a deeper loop does not
 * compute it again. Rows are read by number and change in place, so expressions that read rows are not cached.
 */
function cached(to: Compilation, expr: Expr, body: (give: (value: string) => string) => string): string {
  if (readsRows(expr))
    return calledFunction(
      to,
      body((value) => `return ${value}`),
    )
  const at = to.functions.length
  const names = [...freeNames(expr)].map((name, i) => ({ now: `v${to.values.of(name)}`, before: `k${at}_${i}` }))
  to.caches.push([`k${at}`, ...names.map(({ before }) => before)].join(', '))
  const isSame = [`k${at} !== undefined`, ...names.map(({ now, before }) => `Object.is(${now}, ${before})`)].join(' && ')
  const store = names.map(({ now, before }) => `${before} = ${now}; `).join('')
  const compute = body((value) => `${store}return k${at} = ${value}`)
  return calledFunction(to, `if (${isSame}) return k${at}; ${compute}`)
}

function readsRows(expr: Expr): boolean {
  let reads = false
  visit(expr, ({ kind }) => {
    reads ||= kind === 'element'
  })
  return reads
}

const number = ({ type }: Expr, text: string): string => (type === 'bool' ? `Number(${text})` : text)
