/** Statements of a body along a row: reductions, rows, and one thing that is special about it. */

import { along, type Body, key, numeric, withNumber, withRow } from './body.js'
import { call, type Expr, element, load, named, num, type Result, reduce, scalarOf, whole } from './describe.js'
import type { Context, OpDraft } from './draft.js'
import { carry, fold, monoid } from './in_order.js'

/** Says if an expression reads rows that are made in order: a row of such expressions is read in order as well. */
function readsOrdered(e: Expr, rows: Context['rows']): boolean {
  const inner = (each: Expr): boolean => readsOrdered(each, rows)
  switch (e.kind) {
    case 'element':
      return rows.some(({ name, ordered }) => ordered && name === e.row) || inner(e.at)
    case 'call':
      return e.args.some(inner)
    case 'load':
      return e.at.some(inner)
    case 'reduce':
      return inner(e.loop.value)
    default:
      return false
  }
}

/** Reductions and rows. */
export function addStatements(draft: OpDraft, body: Body, count: number): Body {
  const { random } = draft
  if (count === 0) return body
  const isRow = random.chance(0.4)
  const value = draft.number(3, along(body))
  const ordered = readsOrdered(value, body.at.rows)
  if (isRow) {
    const name = draft.fresh('v')
    draft.body.push({ kind: 'row', name, loop: { length: body.n, index: 'c', value } })
    return addStatements(draft, withRow(body, name, numeric(value), ordered), count - 1)
  }
  const name = draft.fresh('t')
  const fn = random.pick(['sum', 'sum', 'max', 'min', 'argmax', 'argmin'] as const)
  const whole = numeric(value) === 'i32' && (fn === 'max' || fn === 'min')
  // Of no element, an integer has no largest: the largest of floats does.
  const made = reduce(fn, body.n, 'c', whole ? call('f32', 'toFloat', value) : value)
  draft.body.push({ kind: 'const', name, value: made })
  const scaled = fn === 'sum' && made.type === 'f32' && random.chance(0.6)
  if (!scaled) return addStatements(draft, withNumber(body, name, numeric(made)), count - 1)
  const mean = draft.fresh('t')
  draft.body.push({ kind: 'const', name: mean, value: call('f32', 'div', named(name, 'f32'), named(body.n)) })
  return addStatements(draft, withNumber(body, mean, 'f32'), count - 1)
}

export type Special = 'scan' | 'monoid' | 'fold' | 'topK' | 'argsort' | 'threshold' | 'histogram' | 'carry'

/** The thing that is special about a body. */
export function addSpecial(draft: OpDraft, special: Special, body: Body): Body {
  switch (special) {
    case 'scan':
      return scan(draft, body)
    case 'monoid':
      return monoid(draft, body)
    case 'fold':
      return fold(draft, body)
    case 'topK':
      return topK(draft, body)
    case 'argsort':
      return argsort(draft, body)
    case 'threshold':
      return threshold(draft, body)
    case 'histogram':
      return histogram(draft, body)
    case 'carry':
      return carry(draft, body)
  }
}

function scan(draft: OpDraft, body: Body): Body {
  const value = draft.number(2, along(body))
  const name = draft.fresh('s')
  draft.body.push({ kind: 'scan', name, loop: { length: body.n, index: 'c', value } })
  return withRow(body, name, numeric(value), !draft.random.chance(0.2) || readsOrdered(value, body.at.rows))
}

function topK(draft: OpDraft, body: Body): Body {
  const { random } = draft
  const name = draft.fresh('k')
  const k = draft.dim('k', 'ranked')
  const isFixed = random.chance(0.5)
  const count = random.between(1, 9)
  draft.body.push({ kind: 'topK', name, k: isFixed ? count : k, loop: { length: body.n, index: 'c', value: key(draft, body) } })
  const first = isFixed ? element('f32', `${name}.values`, whole(random.below(count))) : undefined
  const row = (which: 'values' | 'indices'): Result => ({
    kind: 'row',
    loop: { length: k, index: 'j', value: element(which === 'values' ? 'f32' : 'i32', `${name}.${which}`, named('j')) },
  })
  if (first === undefined)
    return {
      ...body,
      outputs: [
        { dims: [k], result: row('values') },
        { dims: [k], result: row('indices') },
      ],
    }
  const held = draft.fresh('t')
  draft.body.push({ kind: 'const', name: held, value: first })
  return withNumber(body, held, 'f32')
}

function argsort(draft: OpDraft, body: Body): Body {
  const name = draft.fresh('o')
  const most = draft.random.pick([129, 512, 1024, 4096])
  draft.limit(body.n, most)
  draft.body.push({ kind: 'argsort', name, most, loop: { length: body.n, index: 'c', value: key(draft, body) } })
  const place = element('i32', name, named('c'))
  const [source] = draft.inputs.filter(({ dims }) => dims.at(-1) === body.n)
  const at = body.at.indices
  const places = source?.dims.slice(0, -1).flatMap((dim) => at.find((index) => index.dim === dim) ?? []) ?? []
  const isReadable = source !== undefined && places.length === source.dims.length - 1
  const value =
    isReadable && draft.random.chance(0.7)
      ? load(scalarOf(source.dtype), source.name, ...places.map((index) => named(index.name)), place)
      : place
  return { ...body, outputs: [{ dims: [body.n], result: { kind: 'row', loop: { length: body.n, index: 'c', value } } }] }
}

function threshold(draft: OpDraft, body: Body): Body {
  const name = draft.fresh('t')
  const weight = draft.random.chance(0.6) ? num(1) : call('f32', 'abs', key(draft, body))
  const target = draft.random.chance(0.5) ? num(draft.random.between(1, 9)) : num(draft.random.pick([0.5, 2.5, 100.5]))
  const own = key(draft, body)
  draft.body.push({ kind: 'threshold', name, target, loop: { length: body.n, index: 'c', value: own }, weight })
  const kept = call('f32', 'select', call('bool', 'ge', own, named(name, 'f32')), own, num(0))
  return {
    ...withNumber(body, name, 'f32'),
    outputs: [{ dims: [body.n], result: { kind: 'row', loop: { length: body.n, index: 'c', value: kept } } }],
  }
}

function histogram(draft: OpDraft, body: Body): Body {
  const bins = draft.dim('v', 'few')
  const value = draft.integer(3, along(body))
  return {
    ...body,
    outputs: [{ dims: [bins], result: { kind: 'histogram', bins, loop: { length: body.n, index: 'c', value } } }],
  }
}
