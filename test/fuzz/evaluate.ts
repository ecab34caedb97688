/** The float64 reference of a described op, with error bounds of float32 arithmetic. Independent of src: it shares no code with the compiler. */
import { slack, unit } from './bounds.js'
import type { DType, Expr, Loop, MonoidDesc, OpDesc, Reducer, Result } from './describe.js'
import { apply } from './functions.js'
import { runStatement } from './statements.js'
import { add, exact, isExact, isNaNVal, isUnknown, maximum, minimum, sumOf, union, unknown, type Val } from './value.js'

/** The numbers of a tensor, row-major. */
export interface Held {
  readonly dtype: DType
  readonly shape: readonly number[]
  readonly values: readonly Val[]
}

/** Values of names while a body is evaluated. */
export class Scope {
  readonly numbers = new Map<string, Val>()
  readonly rows = new Map<string, readonly Val[]>()
  readonly tensors: ReadonlyMap<string, Held>
  readonly monoids: readonly MonoidDesc[]
  /** The number of undecided conditions around an expression, which may then not be evaluated at all. */
  unsure = 0

  constructor(tensors: ReadonlyMap<string, Held>, monoids: readonly MonoidDesc[]) {
    this.tensors = tensors
    this.monoids = monoids
  }

  number(name: string): Val {
    const found = this.numbers.get(name)
    if (found === undefined) throw new Error(`nothing is called ${name}`)
    return found
  }

  lengthOf(length: string | number): number {
    return typeof length === 'number' ? length : this.number(length).v
  }
}

/** @throws for reads outside of a tensor or a row, which are faults of the generator of the description */
export function evaluate(e: Expr, scope: Scope): Val {
  switch (e.kind) {
    case 'const': {
      const near = Math.fround(e.value)
      return e.type === 'i32' || near === e.value
        ? exact(e.value)
        : { v: e.value, lo: Math.min(near, e.value), hi: Math.max(near, e.value) }
    }
    case 'name':
      return scope.number(e.name)
    case 'load':
      return loaded(e.tensor, e.at, scope)
    case 'element':
      return at(scope.rows.get(e.row) ?? [], evaluate(e.at, scope), e.row, scope)
    case 'reduce':
      return reduced(e.fn, e.loop, e.type, scope)
    case 'call':
      return called(e, scope)
  }
}

function loaded(tensor: string, indices: readonly Expr[], scope: Scope): Val {
  const held = scope.tensors.get(tensor)
  if (held === undefined) throw new Error(`there is no tensor ${tensor}`)
  let offset = 0
  for (const [axis, index] of indices.entries()) {
    const place = evaluate(index, scope)
    const extent = held.shape[axis] ?? 0
    if (!isExact(place)) return unknown(0)
    if (!(place.v >= 0 && place.v < extent)) return outside(`${tensor}[${place.v}] of ${extent}`, scope)
    offset = offset * extent + place.v
  }
  return held.values[offset] ?? outside(tensor, scope)
}

function outside(what: string, scope: Scope): Val {
  if (scope.unsure > 0) return unknown(0)
  throw new Error(`the description reads ${what}`)
}

function at(row: readonly Val[], place: Val, name: string, scope: Scope): Val {
  if (!isExact(place)) return unknown(0)
  return row[place.v] ?? outside(`${name}(${place.v}) of ${row.length}`, scope)
}

function called(e: Expr & { readonly kind: 'call' }, scope: Scope): Val {
  const [first, second, third] = e.args
  if (first === undefined) throw new Error(`${e.fn} of nothing`)
  const a = evaluate(first, scope)
  if (e.fn === 'select' && second !== undefined && third !== undefined) {
    if (isExact(a)) return evaluate(a.v === 0 ? third : second, scope)
    scope.unsure++
    const [yes, no] = [evaluate(second, scope), evaluate(third, scope)]
    scope.unsure--
    return union(a.v === 0 ? no.v : yes.v, yes, no)
  }
  if (e.fn === 'not') return isExact(a) ? exact(1 - a.v) : unknown(1 - a.v)
  if (e.fn === 'and' || e.fn === 'or') return second === undefined ? a : logic(e.fn, a, second, scope)
  return apply(e, [a, ...e.args.slice(1).map((arg) => evaluate(arg, scope))])
}

function logic(fn: 'and' | 'or', a: Val, second: Expr, scope: Scope): Val {
  const decides = fn === 'and' ? 0 : 1
  if (isExact(a) && a.v === decides) return a
  if (isExact(a)) return evaluate(second, scope)
  scope.unsure++
  const b = evaluate(second, scope)
  scope.unsure--
  return isExact(b) && b.v === decides ? b : unknown(a.v === decides ? a.v : b.v)
}

/** The values of a loop. */
export function elements({ length, index, value }: Loop, scope: Scope): Val[] {
  const count = scope.lengthOf(length)
  const before = scope.numbers.get(index)
  const all: Val[] = []
  for (let i = 0; i < count; i++) {
    scope.numbers.set(index, exact(i))
    all.push(evaluate(value, scope))
  }
  if (before !== undefined) scope.numbers.set(index, before)
  return all
}

function reduced(fn: Reducer, loop: Loop, type: 'f32' | 'i32', scope: Scope): Val {
  const all = elements(loop, scope)
  if (fn === 'sum') return type === 'f32' ? sumOf(all) : wholeSum(all)
  if (fn === 'max') return all.reduce(maximum, exact(Number.NEGATIVE_INFINITY))
  if (fn === 'min') return all.reduce(minimum, exact(Number.POSITIVE_INFINITY))
  return picked(all, fn === 'argmax' ? 1 : -1)
}

function wholeSum(all: readonly Val[]): Val {
  const v = all.reduce((sum, each) => sum + each.v, 0)
  return all.every(isExact) && all.reduce((sum, each) => sum + Math.abs(each.v), 0) < 2 ** 31 ? exact(v) : unknown(v)
}

/** The first of the largest elements; of intervals, the one that lies above all others. */
function picked(all: readonly Val[], sign: 1 | -1): Val {
  let best = -1
  for (const [i, each] of all.entries())
    if (!Number.isNaN(each.v) && (best < 0 || sign * each.v > sign * (all[best]?.v ?? 0))) best = i
  if (all.some(isUnknown)) return unknown(Math.max(best, 0))
  const most = all[best]
  if (most === undefined) return exact(0)
  const low = sign > 0 ? most.lo : -most.hi
  const rivals = all.filter((each, i) => i !== best && !isNaNVal(each) && (sign > 0 ? each.hi : -each.lo) >= low)
  return rivals.every((each) => isExact(each) && isExact(most)) ? exact(best) : unknown(best)
}

/** The prefix sums, each in any order. */
export function prefixSums(all: readonly Val[], type: 'f32' | 'i32'): Val[] {
  return all.map((_, i) => (type === 'f32' ? sumOf : wholeSum)(all.slice(0, i + 1)))
}

/** The error of combining parts of a row in another order. */
export const reorderError = (partials: readonly Val[]): number => {
  const size = partials.reduce(
    (most, each) => (isUnknown(each) || isNaNVal(each) ? most : Math.max(most, Math.abs(each.lo), Math.abs(each.hi))),
    0,
  )
  return Number.isFinite(size) ? slack * unit * partials.length * size : 0
}

/** Runs an op: every output, as numbers before they are stored. */
export function runOp(op: OpDesc, tensors: ReadonlyMap<string, Held>, dims: Readonly<Record<string, number>>): Map<string, Held> {
  const outputs = new Map(
    op.outputs.map(({ name, dtype, dims: axes }) => {
      const shape = axes.map((axis) => dims[axis] ?? 0)
      const values = Array.from({ length: shape.reduce((size, extent) => size * extent, 1) }, () => unknown(Number.NaN))
      return [name, { dtype, shape, values }] as const
    }),
  )
  const scope = new Scope(tensors, op.monoids)
  for (const [name, extent] of Object.entries(dims)) scope.numbers.set(name, exact(extent))
  for (const { name, given } of op.attrs) scope.numbers.set(name, exact(given))
  const walk = (axis: number, offsets: readonly number[]): void => {
    const row = op.rows[axis]
    if (row === undefined) {
      for (const s of op.body) runStatement(s, scope)
      for (const { name, result } of op.outputs)
        store(result, outputs.get(name)?.values ?? [], outputs.get(name)?.shape ?? [], offsets, scope)
      return
    }
    for (let i = 0; i < (dims[row.dim] ?? 0); i++) {
      scope.numbers.set(row.index, exact(i))
      walk(axis + 1, [...offsets, i])
    }
  }
  walk(0, [])
  return outputs
}

function store(result: Result, values: Val[], shape: readonly number[], rows: readonly number[], scope: Scope): void {
  const offset = rows.reduce((sum, i, axis) => sum * (shape[axis] ?? 0) + i, 0)
  if (result.kind === 'number') {
    values[offset] = evaluate(result.value, scope)
    return
  }
  const length = shape.at(-1) ?? 0
  const all = result.kind === 'row' ? elements(result.loop, scope) : counted(length, elements(result.loop, scope))
  for (const [i, value] of all.entries()) values[offset * length + i] = value
}

/** Number of elements in each bin; those that are not known may fall into any. */
export function counted(bins: number, all: readonly Val[]): Val[] {
  const sure = Array.from({ length: bins }, () => exact(0))
  for (const each of all) {
    if (isExact(each)) {
      const bin = sure[each.v]
      if (bin !== undefined) sure[each.v] = add(bin, exact(1))
    }
  }
  const open = all.filter((each) => !isExact(each)).length
  return open === 0 ? sure : sure.map(({ v }) => ({ v, lo: v, hi: v + open }))
}
