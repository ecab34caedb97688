/**
 * Compiles expressions of a kernel to JavaScript, so that Node's JIT compiles them to machine code, to evaluate kernels over thousands of
 * elements. The semantics are those of src/ir/evaluate_expr.ts, expression by expression, and tests compare the two. Names of a
 * kernel never occur in the source: each has a number here.
 */
import type { Expr, ExprOf } from './expr.js'
import { type IntrinsicName, intrinsic } from './intrinsics.js'
import { monoid } from './monoids.js'
import { freeNames, operands, visit, visitUp } from './walk.js'

/** A requested expression: as it is, or at a position of the row that `index` runs over. */
export interface Root {
  readonly expr: Expr
  readonly index?: string
}

/** Names that the source refers to by number, in the order of their numbers. */
export interface Names {
  readonly values: readonly string[]
  readonly rows: readonly string[]
  readonly tensors: readonly { readonly name: string; readonly rank: number }[]
  readonly dims: readonly string[]
  readonly attrs: readonly string[]
}

export interface JavaScript {
  /** Body of a function of `scope`: see evaluate.ts. */
  readonly text: string
  readonly names: Names
}

/** Longest source of an operand, since neither V8's parser nor a reader goes arbitrarily deep. */
const longest = 400

const isLeaf = ({ kind }: Expr): boolean => ['const', 'dim', 'attr', 'index', 'local'].includes(kind)

/** Numbers names in the order of their first use. */
function numbered<K = string>() {
  const known = new Map<K, number>()
  return {
    of: (name: K): number => {
      const number = known.get(name) ?? known.size
      known.set(name, number)
      return number
    },
    names: (): readonly K[] => [...known.keys()],
  }
}

const literal = (value: number | boolean): string => (Object.is(value, -0) ? '(-0)' : `(${value})`)

/**
 * `double`: in doubles, as bodies compute. `single`: every float of an expression is rounded to float32 where it is computed, as on a device.
 * `strayed`: the caller rounds to float32, possibly in another way, as a device does that adds in another order.
 */
export type Precision = 'double' | 'single' | 'strayed'

/** Functions that return the roots, in their order, and one that sets each value and row by its number. */
export function javascript(
  roots: readonly Root[],
  defined: { readonly values: readonly string[]; readonly rows: readonly string[] },
  precision: Precision = 'double',
): JavaScript {
  const [values, rows, dims, attrs] = [numbered(), numbered(), numbered(), numbered()]
  const tensors = numbered()
  const ranks = new Map<string, number>()
  const functions: string[] = []
  /** Variables of functions that keep their last value. */
  const keeps: string[] = []
  /** Functions of the tables of intrinsics and monoids, by the names they have in the text. */
  const taken = new Map<string, string>()
  const take = (name: string, from: string): string => {
    taken.set(name, from)
    return name
  }
  const texts = new Map<Expr, string>()
  const uses = usesOf(roots.map(({ expr }) => expr))

  /** A function of its own, which is called wherever its value is wanted. */
  const called = (body: string): string => {
    functions.push(`function f${functions.length}() { ${body} }`)
    return `f${functions.length - 1}()`
  }
  const text = (expr: Expr): string => texts.get(expr) ?? 'undefined'

  const element = (expr: ExprOf<'element'>): string => {
    const row = `r${rows.of(expr.row)}`
    return called(
      `const i = ${text(expr.index)}; return (i >>> 0) === i && i < ${row}.length ? ${row}[i] : scope.noElement(${rows.of(expr.row)}, i, ${row})`,
    )
  }
  const load = (expr: ExprOf<'load'>): string => {
    const t = tensors.of(expr.tensor)
    ranks.set(expr.tensor, expr.indices.length)
    const places = expr.indices.map((_, axis) => `i${axis}`)
    const lets = expr.indices.map((at, axis) => `i${axis} = ${text(at)}`)
    const inside = places.map((place, axis) => `(${place} >>> 0) === ${place} && ${place} < e${t}_${axis}`)
    const offset = places.reduce((before, place, axis) => (axis === 0 ? place : `(${before}) * e${t}_${axis} + ${place}`), '0')
    const outside = `scope.noLoad(${t}, [${places.join(', ')}])`
    const known = lets.length === 0 ? '' : `const ${lets.join(', ')}; `
    return called(`${known}return ${[...inside, `h${t}`].join(' && ')} ? t${t}[${offset}] : ${outside}`)
  }
  /**
   * A function that keeps its last value for as long as the names that the expression reads keep theirs: what a deeper loop asks for again
   * is computed once. Rows are read by number and change in place, so that nothing is kept of what reads them.
   */
  const kept = (expr: Expr, body: (give: (value: string) => string) => string): string => {
    if (readsRows(expr)) return called(body((value) => `return ${value}`))
    const at = functions.length
    const names = [...freeNames(expr)].map((name, i) => ({ now: `v${values.of(name)}`, before: `k${at}_${i}` }))
    keeps.push([`k${at}`, ...names.map(({ before }) => before)].join(', '))
    const isSame = [`k${at} !== undefined`, ...names.map(({ now, before }) => `Object.is(${now}, ${before})`)].join(' && ')
    const keep = names.map(({ now, before }) => `${before} = ${now}; `).join('')
    return called(`if (${isSame}) return k${at}; ${body((value) => `${keep}return k${at} = ${value}`)}`)
  }
  const fold = (expr: ExprOf<'fold'>): string => {
    const index = `v${values.of(expr.index)}`
    const each = number(expr.value, text(expr.value))
    const { combine, identity } = monoid(expr.monoid)
    if (combine === undefined)
      return kept(expr, (give) =>
        give(
          `${take(`evaluate_${expr.monoid}`, `scope.monoids.${expr.monoid}.evaluate`)}(${text(expr.length)}, (at) => { ${index} = at; return ${each} })`,
        ),
      )
    const next =
      expr.monoid === 'sum'
        ? `total += ${each}`
        : `total = ${take(`combine_${expr.monoid}`, `scope.monoids.${expr.monoid}.combine`)}(total, ${each})`
    return kept(
      expr,
      (give) =>
        `let total = ${literal(identity)}; const length = ${text(expr.length)}; ` +
        `for (let at = 0; at < length; at++) { ${index} = at; ${next} } ${give('total')}`,
    )
  }
  /** An intrinsic's symbol is JavaScript where it has one; but for integer quotients, which JavaScript has no operator for. */
  const call = (fn: IntrinsicName, args: readonly string[]): string => {
    const { symbol } = intrinsic(fn)
    const [a, b, c] = args
    if (fn === 'select') return `(${a} ? ${b} : ${c})`
    if (symbol === undefined || symbol === 'idiv')
      return `${take(`${fn}_`, `scope.intrinsics.${fn}.evaluate`)}(${args.join(', ')})`
    return b === undefined ? `(${symbol}${a})` : `(${a} ${symbol} ${b})`
  }
  const rounded = (expr: Expr, made: string): string => {
    if (precision === 'double' || expr.type !== 'f32') return made
    // Constants and attributes are rounded once, by the host.
    const isGiven = expr.kind === 'const' || expr.kind === 'attr'
    return precision === 'single' || isGiven ? `Math.fround(${made})` : `${take('strayed', 'scope.strayed')}(${made})`
  }
  const textOf = (expr: Expr): string => {
    switch (expr.kind) {
      case 'const':
        return rounded(expr, literal(expr.value))
      case 'dim':
        return `d${dims.of(expr.name)}`
      case 'attr':
        return rounded(expr, `a${attrs.of(expr.name)}`)
      case 'index':
      case 'local':
        return `v${values.of(expr.name)}`
      case 'element':
        return element(expr)
      case 'load':
        return load(expr)
      case 'call':
        return rounded(expr, call(expr.fn, expr.args.map(text)))
      case 'fold':
        return rounded(expr, fold(expr))
    }
  }
  for (const { expr } of roots) {
    visitUp(expr, (node) => {
      if (texts.has(node)) return
      const made = textOf(node)
      const isShared = (uses.get(node) ?? 0) > 1 && node.kind === 'call'
      texts.set(node, !isLeaf(node) && (isShared || made.length > longest) ? called(`return ${made}`) : made)
    })
  }
  const made = roots.map(({ expr, index }) =>
    index === undefined ? `() => ${text(expr)}` : `(at) => { v${values.of(index)} = at; return ${text(expr)} }`,
  )
  for (const name of defined.values) values.of(name)
  for (const name of defined.rows) rows.of(name)
  const names: Names = {
    values: values.names(),
    rows: rows.names(),
    tensors: tensors.names().map((name) => ({ name, rank: ranks.get(name) ?? 0 })),
    dims: dims.names(),
    attrs: attrs.names(),
  }
  return { names, text: wholeText(names, [...taken], [...keeps.map((kept) => `let ${kept}`), ...functions], made) }
}

function readsRows(expr: Expr): boolean {
  let reads = false
  visit(expr, ({ kind }) => {
    reads ||= kind === 'element'
  })
  return reads
}

const number = ({ type }: Expr, text: string): string => (type === 'bool' ? `Number(${text})` : text)

/** Number of times an expression is an operand of another, or a root. */
function usesOf(roots: readonly Expr[]): ReadonlyMap<Expr, number> {
  const uses = new Map<Expr, number>()
  const seen = new Set<Expr>()
  const use = (expr: Expr): void => void uses.set(expr, (uses.get(expr) ?? 0) + 1)
  for (const root of roots) {
    use(root)
    visitUp(root, (node) => {
      if (seen.has(node)) return
      seen.add(node)
      for (const operand of operands(node)) use(operand)
    })
  }
  return uses
}

function wholeText(
  { values, rows, tensors, dims, attrs }: Names,
  taken: readonly (readonly [string, string])[],
  functions: readonly string[],
  made: readonly string[],
): string {
  const lines = [
    ...taken.map(([name, from]) => `const ${name} = ${from}`),
    ...dims.map((_, i) => `const d${i} = scope.dims[${i}]`),
    ...attrs.map((_, i) => `const a${i} = scope.attrs[${i}]`),
    ...tensors.flatMap(({ rank }, t) => [
      `const t${t} = scope.tensors[${t}].data, h${t} = scope.tensors[${t}].isWhole`,
      ...Array.from({ length: rank }, (_, axis) => `const e${t}_${axis} = scope.tensors[${t}].shape[${axis}]`),
    ]),
    ...values.map((_, i) => `let v${i}`),
    ...rows.map((_, i) => `let r${i}`),
    ...functions,
    `return {`,
    `  roots: [${made.join(',\n    ')}],`,
    `  setValue: [${values.map((_, i) => `(x) => { v${i} = x }`).join(', ')}],`,
    `  setRow: [${rows.map((_, i) => `(x) => { r${i} = x }`).join(', ')}],`,
    `}`,
  ]
  return lines.join('\n')
}
