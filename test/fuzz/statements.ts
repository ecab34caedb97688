/** Reference semantics of a body's named statements: rows, scans, monoids, folds, rankings, sorted rows, thresholds and segments. Independent of src. */
import type { MonoidDesc, Stmt } from './describe.js'
import { counted, elements, evaluate, prefixSums, reorderError, type Scope } from './evaluate.js'
import { exact, isExact, isNaNVal, isUnknown, unknown, type Val, widened } from './value.js'

type StmtOf<K extends Stmt['kind']> = Stmt & { readonly kind: K }

/** Evaluates a statement and stores the values that it names. */
export function runStatement(s: Stmt, scope: Scope): void {
  switch (s.kind) {
    case 'const':
      scope.numbers.set(s.name, evaluate(s.value, scope))
      return
    case 'row':
      scope.rows.set(s.name, s.inner === undefined ? elements(s.loop, scope) : rowOf(s, s.inner, scope))
      return
    case 'histogram':
      scope.rows.set(s.name, counted(scope.lengthOf(s.bins), elements(s.loop, scope)))
      return
    case 'scan':
      scope.rows.set(s.name, prefixSums(elements(s.loop, scope), s.loop.value.type === 'i32' ? 'i32' : 'f32'))
      return
    case 'monoid':
      combine(s, scope)
      return
    case 'fold':
      fold(s, scope)
      return
    case 'topK':
      rank(s, scope)
      return
    case 'argsort':
      scope.rows.set(s.name, sorted(elements(s.loop, scope)))
      return
    case 'threshold':
      scope.numbers.set(s.name, threshold(s, scope))
      return
    case 'segmentSum':
      scope.numbers.set(s.name, segmentSum(s, scope))
  }
}

/** A row whose elements have consts. */
function rowOf({ loop: { length, index, value } }: StmtOf<'row'>, inner: readonly Stmt[], scope: Scope): Val[] {
  return Array.from({ length: scope.lengthOf(length) }, (_, i) => {
    scope.numbers.set(index, exact(i))
    for (const part of inner) runStatement(part, scope)
    return evaluate(value, scope)
  })
}

function monoidOf(name: string, { monoids }: Scope): MonoidDesc {
  const found = monoids.find((each) => each.name === name)
  if (found === undefined) throw new Error(`there is no monoid ${name}`)
  return found
}

/** Parts are combined from the left; the results of other orders lie within the added error. */
function combine(s: StmtOf<'monoid'>, scope: Scope): void {
  const { fields } = monoidOf(s.monoid, scope)
  const count = scope.lengthOf(s.length)
  let total = fields.map(({ identity }) => exact(identity))
  const partials: Val[][] = fields.map(() => [])
  for (let i = 0; i < count; i++) {
    scope.numbers.set(s.index, exact(i))
    for (const [at, { name }] of fields.entries()) {
      const own = s.fields[name]
      scope.numbers.set(`x.${name}`, total[at] ?? unknown(0))
      scope.numbers.set(`y.${name}`, own === undefined ? unknown(0) : evaluate(own, scope))
    }
    total = fields.map((field) => evaluate(field.combine, scope))
    for (const [at, value] of total.entries()) partials[at]?.push(value)
  }
  for (const [at, { name }] of fields.entries()) {
    const all = partials[at] ?? []
    const error = reorderError(all)
    scope.numbers.set(`${s.name}.${name}`, widened(total[at] ?? unknown(0), error))
    scope.rows.set(
      `${s.name}.${name}`,
      all.map((value) => widened(value, error)),
    )
  }
}

function fold(s: StmtOf<'fold'>, scope: Scope): void {
  const numbers = s.fields.flatMap((field) => (field.is === 'number' ? [field] : []))
  const rows = s.fields.flatMap((field) => (field.is === 'row' ? [field] : []))
  const starts = numbers.map(({ start }) => evaluate(start, scope))
  const first = rows.map(({ start }) => elements(start, scope))
  const each = numbers.map((): Val[] => [])
  for (const [i, { name }] of numbers.entries()) scope.numbers.set(name, starts[i] ?? unknown(0))
  for (const [i, { name }] of rows.entries()) scope.rows.set(name, first[i] ?? [])
  for (let i = 0; i < scope.lengthOf(s.length); i++) {
    scope.numbers.set(s.index, exact(i))
    for (const part of s.step) runStatement(part, scope)
    const made = numbers.map(({ next }) => evaluate(next, scope))
    const after = rows.map(({ next }) => elements(next, scope))
    for (const [at, { name }] of numbers.entries()) {
      const value = made[at] ?? unknown(0)
      scope.numbers.set(name, value)
      each[at]?.push(value)
    }
    for (const [at, { name }] of rows.entries()) scope.rows.set(name, after[at] ?? [])
  }
  for (const [at, { name }] of numbers.entries()) {
    scope.numbers.set(`${s.name}.${name}`, scope.number(name))
    scope.rows.set(`${s.name}.${name}`, each[at] ?? [])
  }
  for (const { name } of rows) scope.rows.set(`${s.name}.${name}`, scope.rows.get(name) ?? [])
}

/** True if the order of two different elements is known. */
const apart = (a: Val, b: Val): boolean => isNaNVal(a) || isNaNVal(b) || (isExact(a) && isExact(b)) || a.hi < b.lo || a.lo > b.hi

/** Indices by key, equal keys in their order, NaN last. @param sign 1 to ascend, -1 to descend */
function order(keys: readonly Val[], sign: 1 | -1): number[] {
  const behind = (i: number): number => Number(Number.isNaN(keys[i]?.v ?? Number.NaN))
  return keys
    .map((_, i) => i)
    .sort(
      (a, b) =>
        behind(a) - behind(b) ||
        (behind(a) ? 0 : sign * ((keys[a]?.v ?? 0) < (keys[b]?.v ?? 0) ? -1 : (keys[a]?.v ?? 0) > (keys[b]?.v ?? 0) ? 1 : 0)) ||
        a - b,
    )
}

/** True if an element's place in sorted order is known. */
function settled(keys: readonly Val[], places: readonly number[], at: number): boolean {
  const own = keys[places[at] ?? 0]
  const [before, after] = [keys[places[at - 1] ?? -1], keys[places[at + 1] ?? -1]]
  if (own === undefined) return false
  return [before, after].every((other) => other === undefined || apart(own, other))
}

function sorted(keys: readonly Val[]): Val[] {
  const places = order(keys, 1)
  if (keys.some(isUnknown)) return places.map((place) => unknown(place))
  return places.map((place, at) => (settled(keys, places, at) ? exact(place) : unknown(place)))
}

function rank(s: StmtOf<'topK'>, scope: Scope): void {
  const keys = elements(s.loop, scope)
  const places = order(keys, -1)
  const count = scope.lengthOf(s.k)
  const isOpen = keys.some(isUnknown)
  const [values, indices]: [Val[], Val[]] = [[], []]
  for (let i = 0; i < count; i++) {
    const place = places[i] ?? -1
    const key = keys[place]
    const isThere = key !== undefined && !Number.isNaN(key.v)
    const own = isThere ? key : exact(Number.NEGATIVE_INFINITY)
    values.push(isOpen ? unknown(own.v) : own)
    indices.push(isOpen || (isThere && !settled(keys, places, i)) ? unknown(isThere ? place : -1) : exact(isThere ? place : -1))
  }
  scope.rows.set(`${s.name}.values`, values)
  scope.rows.set(`${s.name}.indices`, indices)
}

/** The last of the prefix sums between two boundaries. */
function segmentSum({ segment, offset, loop }: StmtOf<'segmentSum'>, scope: Scope): Val {
  const [from = 0, to = 0] = [0, 1].map((next) => {
    scope.numbers.set(offset.index, exact(evaluate(segment, scope).v + next))
    return evaluate(offset.value, scope).v
  })
  const sums = prefixSums(elements(loop, scope).slice(from, to), loop.value.type === 'i32' ? 'i32' : 'f32')
  return sums.at(-1) ?? exact(0)
}

/** The largest key from which on elements weigh enough. Where sums of weights, or the order of keys, do not decide it, it is not known. */
function threshold(s: StmtOf<'threshold'>, scope: Scope): Val {
  const target = evaluate(s.target, scope)
  const keys = elements(s.loop, scope)
  const weights = elements({ ...s.loop, value: s.weight }, scope)
  if ([...keys, ...weights, target].some((each) => !isExact(each) && !Number.isNaN(each.v))) return unknown(0)
  const rows = keys
    .map((key, i) => ({ key: key.v, weight: Math.min(weights[i]?.v ?? 0, 256) }))
    .filter(({ key, weight }) => weight > 0 && !Number.isNaN(key))
    .sort((a, b) => b.key - a.key)
  let total = 0
  for (const { key, weight } of rows) {
    total += weight
    // Weights are summed in units of 2^-36: close to the target, the sum may be on either side.
    if (!Number.isInteger(weight) && Math.abs(total - target.v) < 2 ** -20) return unknown(key)
    if (total >= target.v) return exact(key)
  }
  return exact(Number.NEGATIVE_INFINITY)
}
