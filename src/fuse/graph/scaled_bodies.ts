/**
 * Scale factors in bodies: the inputs of an op that have to be scaled, with the indices, for an element of its result to come out scaled. A
 * factor passes through one side of a multiplication, and through both sides of sums and choices. It passes through no expression that is not
 * proportional to its operands. The tensor that takes the factor must have no other use: not in a condition, an index, a reduction or the other
 * side of the multiplication.
 */

import { index } from '../../ir/build.js'
import { constructOf } from '../../ir/constructs/index.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import type { AttrValue } from '../../ir/graph.js'
import type { Kernel, StmtOf } from '../../ir/kernel.js'
import { freeNames, stmtExprs, substitute, visit } from '../../ir/walk.js'

/** Indices at which a tensor is scaled, one per axis that the factor varies along; undefined for an axis along which it is constant. */
export type At = readonly (Expr | undefined)[]

/** An input that has to be scaled. */
export interface ScaledInput {
  readonly tensor: string
  readonly at: At
}

/** A read that takes the factor, with the values of row indices at the read. */
interface Read {
  readonly load: ExprOf<'load'>
  readonly named: ReadonlyMap<string, Expr>
}

type Scaling = readonly Read[]

/**
 * Alternative sets of scaled inputs that scale the output at the given indices; none if that is impossible.
 * @param attrs those of the node, by the op's names
 */
export function scaledInputs(
  kernel: Kernel,
  output: string,
  attrs: Readonly<Record<string, AttrValue>>,
  at: At,
): (readonly ScaledInput[])[] {
  const stores = kernel.body.filter((stmt) => 'tensor' in stmt)
  const own = stores.filter(({ tensor }) => tensor === output)
  const [stored] = own
  if (stored === undefined || own.length > 1 || stored.kind === 'histogram' || stored.when !== undefined) return []
  const indices = indicesOf(stored)
  const places = new Map<string, Expr>()
  for (const [axis, name] of indices.entries()) {
    if (name.kind !== 'index') return []
    const place = at[axis]
    if (place !== undefined) places.set(name.name, place)
  }
  const body = new Body(kernel, attrs)
  const elsewhere = new Set(
    stores.filter((stmt) => stmt !== stored).flatMap((stmt) => stmtExprs(stmt).flatMap((expr) => [...body.reads(expr)])),
  )
  return body
    .scalings(stored.value, new Map())
    .flatMap((scaling) => {
      if (scaling.some(({ load }) => elsewhere.has(load.tensor))) return []
      const inputs = scaling.map(({ load, named }) => scaledAt(body, load, named, places))
      return inputs.includes(undefined) ? [] : [merged(inputs.flatMap((each) => each ?? []))]
    })
    .filter((scaling) => scaling.length > 0)
}

const indicesOf = (stmt: StmtOf<'store'> | StmtOf<'storeRow'>): readonly Expr[] =>
  stmt.kind === 'store' ? stmt.indices : [...stmt.rows, index(stmt.index)]

/** Each input once; none if one would be scaled at different indices. */
function merged(inputs: readonly ScaledInput[]): readonly ScaledInput[] {
  const found = new Map<string, ScaledInput>()
  for (const input of inputs) {
    const known = found.get(input.tensor)
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(input)) return []
    found.set(input.tensor, input)
  }
  return [...found.values()]
}

/** Indices of a read in its tensor: those that follow from the factor's, and undefined along axes that are independent of it. */
function scaledAt(
  body: Body,
  load: ExprOf<'load'>,
  named: ReadonlyMap<string, Expr>,
  places: ReadonlyMap<string, Expr>,
): ScaledInput | undefined {
  const at: (Expr | undefined)[] = []
  for (const given of load.indices) {
    const written = body.written(substitute(given, named))
    const names = [...freeNames(written)]
    if (!names.some((name) => places.has(name))) at.push(undefined)
    else if (names.every((name) => places.has(name)) && isWhole(written)) at.push(substitute(written, places))
    else return undefined
  }
  return at.some((place) => place !== undefined) ? { tensor: load.tensor, at } : undefined
}

const wholeCalls: readonly string[] = ['add', 'sub', 'mul', 'idiv', 'mod']

/** True if an index consists of integer operations that a scale folding may contain. */
const isWhole = (expr: Expr): boolean =>
  expr.kind === 'const' ||
  expr.kind === 'dim' ||
  expr.kind === 'index' ||
  (expr.kind === 'call' && wholeCalls.includes(expr.fn) && expr.args.every(isWhole))

class Body {
  readonly #lets = new Map<string, Expr>()
  readonly #rows = new Map<string, StmtOf<'row'>>()
  /** Tensors that are read, directly or not, to compute a name. */
  readonly #made = new Map<string, ReadonlySet<string>>()
  readonly #constants: ReadonlyMap<string, number>

  constructor({ body, attrs }: Kernel, given: Readonly<Record<string, AttrValue>>) {
    this.#constants = new Map(
      attrs.flatMap(({ name, default: usual }) => {
        const value = given[name] ?? usual
        return typeof value === 'number' ? [[name, value] as const] : []
      }),
    )
    for (const stmt of body) {
      if (stmt.kind === 'let') this.#lets.set(stmt.name, stmt.value)
      if (stmt.kind === 'row') this.#rows.set(stmt.name, stmt)
      const read = new Set(stmtExprs(stmt).flatMap((expr) => [...this.reads(expr)]))
      for (const { name } of constructOf(stmt).defines(stmt)) this.#made.set(name, read)
    }
  }

  /** Tensors that an expression reads, directly or by name. */
  reads(expr: Expr): ReadonlySet<string> {
    const found = new Set<string>()
    visit(expr, (node) => {
      if (node.kind === 'load') found.add(node.tensor)
      const name = node.kind === 'local' ? node.name : node.kind === 'element' ? node.row : undefined
      for (const tensor of (name === undefined ? undefined : this.#made.get(name)) ?? []) found.add(tensor)
    })
    return found
  }

  /** An expression with `let` names inlined. */
  written(expr: Expr): Expr {
    const once = substitute(expr, this.#lets)
    return once === expr ? expr : this.written(once)
  }

  /** Alternatives that scale an expression. */
  scalings(expr: Expr, named: ReadonlyMap<string, Expr>): readonly Scaling[] {
    switch (expr.kind) {
      case 'const':
        return expr.value === 0 ? [[]] : []
      case 'attr':
        return this.#constants.get(expr.name) === 0 ? [[]] : []
      case 'local': {
        const value = this.#lets.get(expr.name)
        return value === undefined ? [] : this.scalings(value, named)
      }
      case 'element': {
        const row = this.#rows.get(expr.row)
        const ofRow =
          row === undefined ? [] : this.scalings(row.value, new Map([...named, [row.index, substitute(expr.index, named)]]))
        return this.#without(ofRow, expr.index)
      }
      case 'load':
        return this.#without([[{ load: expr, named }]], ...expr.indices)
      case 'call':
        return this.#call(expr, named)
      default:
        return []
    }
  }

  #call({ fn, args }: ExprOf<'call'>, named: ReadonlyMap<string, Expr>): readonly Scaling[] {
    const [a, b, c] = args
    if (a === undefined) return []
    if (fn === 'neg') return this.scalings(a, named)
    if (b === undefined) return []
    switch (fn) {
      case 'mul':
        return [...this.#without(this.scalings(a, named), b), ...this.#without(this.scalings(b, named), a)]
      case 'div':
        return this.#without(this.scalings(a, named), b)
      case 'add':
      case 'sub':
        return both(this.scalings(a, named), this.scalings(b, named))
      case 'select':
        return c === undefined ? [] : this.#without(both(this.scalings(b, named), this.scalings(c, named)), a)
      default:
        return []
    }
  }

  /** Alternatives whose tensors the other expressions do not read. */
  #without(scalings: readonly Scaling[], ...others: readonly Expr[]): readonly Scaling[] {
    const read = new Set(others.flatMap((other) => [...this.reads(other)]))
    return scalings.filter((scaling) => scaling.every(({ load }) => !read.has(load.tensor)))
  }
}

const both = (left: readonly Scaling[], right: readonly Scaling[]): readonly Scaling[] =>
  left.flatMap((one) => right.map((other) => [...one, ...other]))
