/** Rankings, counts and segments of a row: the largest by a warp or by sorting, sorted rows, thresholds, sums of segments, and histograms that are read. */
import { along, type Body, key, numeric, withNumber, withRow } from './body.js'
import { call, type Expr, element, load, named, num, type Result, scalarOf, whole } from './describe.js'
import type { OpDraft } from './draft.js'

/** The largest elements, as many as a warp holds. */
export function topK(draft: OpDraft, body: Body): Body {
  const { random } = draft
  const name = draft.fresh('k')
  const k = draft.dim('k', 'ranked')
  const isFixed = random.chance(0.5)
  const count = random.between(1, 9)
  draft.body.push({ kind: 'topK', name, k: isFixed ? count : k, loop: { length: body.n, index: 'c', value: key(draft, body) } })
  if (!isFixed) return { ...body, outputs: both(name, k) }
  const held = draft.fresh('t')
  draft.body.push({ kind: 'const', name: held, value: element('f32', `${name}.values`, whole(random.below(count))) })
  return withNumber(body, held, 'f32')
}

/** A value or a place of a ranking. */
export const ranking = (name: string, which: 'values' | 'indices', at: Expr): Expr =>
  element(which === 'values' ? 'f32' : 'i32', `${name}.${which}`, at)

export const rowOver = (length: string, index: string, value: Expr): Result => ({ kind: 'row', loop: { length, index, value } })

const both = (name: string, k: string): NonNullable<Body['outputs']> =>
  (['values', 'indices'] as const).map((which) => ({ dims: [k], result: rowOver(k, 'j', ranking(name, which, named('j'))) }))

/** More of them, by sorting a row. */
export function longTopK(draft: OpDraft, body: Body): Body {
  const { random } = draft
  const name = draft.fresh('k')
  const count = random.pick([65, 100, 128, 500, 1000, 4096])
  const k = draft.fixed('k', count)
  draft.limit(body.n, 4096)
  draft.body.push({ kind: 'topK', name, k: count, loop: { length: body.n, index: 'c', value: key(draft, body) } })
  const source = draft.inputs.find(({ dims, dtype }) => dims.at(-1) === body.n && scalarOf(dtype) === 'f32')
  const outer = source?.dims.slice(0, -1).flatMap((dim) => body.at.indices.find((index) => index.dim === dim) ?? []) ?? []
  if (source === undefined || outer.length !== source.dims.length - 1 || random.chance(0.5))
    return { ...body, outputs: both(name, k) }
  // Values at the ranked places.
  const place = ranking(name, 'indices', named('j'))
  const read = load('f32', source.name, ...outer.map((index) => named(index.name)), call('i32', 'maximum', place, whole(0)))
  return { ...body, outputs: [{ dims: [k], result: rowOver(k, 'j', call('f32', 'sub', read, num(0.5))) }] }
}

export function argsort(draft: OpDraft, body: Body): Body {
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
  return { ...body, outputs: [{ dims: [body.n], result: rowOver(body.n, 'c', value) }] }
}

export function threshold(draft: OpDraft, body: Body): Body {
  const name = draft.fresh('t')
  const weight = draft.random.chance(0.6) ? num(1) : call('f32', 'abs', key(draft, body))
  const target = draft.random.chance(0.5) ? num(draft.random.between(1, 9)) : num(draft.random.pick([0.5, 2.5, 100.5]))
  const own = key(draft, body)
  draft.body.push({ kind: 'threshold', name, target, loop: { length: body.n, index: 'c', value: own }, weight })
  const kept = call('f32', 'select', call('bool', 'ge', own, named(name, 'f32')), own, num(0))
  return { ...withNumber(body, name, 'f32'), outputs: [{ dims: [body.n], result: rowOver(body.n, 'c', kept) }] }
}

/** The sum of a segment, whose boundaries are multiples of a number. */
export function segmentSum(draft: OpDraft, body: Body): Body {
  const { random } = draft
  const name = draft.fresh('g')
  const value = draft.number(2, along(body))
  const own = body.at.indices.at(-1)
  const segment = own === undefined || random.chance(0.4) ? whole(random.below(4)) : named(own.name)
  const boundary = call('i32', 'mul', named('s'), whole(random.pick([0, 1, 3, 17, 200])))
  const offset = { index: 's', value: call('i32', 'minimum', boundary, named(body.n)) }
  draft.body.push({ kind: 'segmentSum', name, segment, offset, loop: { length: body.n, index: 'c', value } })
  return withNumber(body, name, numeric(value))
}

/** Counts that are stored unchanged. */
export function histogram(draft: OpDraft, body: Body): Body {
  const bins = draft.dim('v', 'few')
  const value = draft.integer(3, along(body))
  return {
    ...body,
    outputs: [{ dims: [bins], result: { kind: 'histogram', bins, loop: { length: body.n, index: 'c', value } } }],
  }
}

/** Named counts: later expressions read them at any index. */
export function counted(draft: OpDraft, body: Body): Body {
  const { random } = draft
  const bins = draft.dim('v', random.chance(0.5) ? 'few' : 'row')
  const value = draft.integer(2, along(body))
  const [count, end] = [draft.fresh('h'), draft.fresh('s')]
  draft.body.push({ kind: 'histogram', name: count, bins, loop: { length: body.n, index: 'c', value } })
  const at = (index: Expr): Expr => element('i32', count, index)
  const j = named('j')
  const outputs: NonNullable<Body['outputs']>[number][] = []
  if (random.chance(0.7)) {
    draft.body.push({ kind: 'scan', name: end, loop: { length: bins, index: 'j', value: at(j) } })
    outputs.push({ dims: [bins], result: rowOver(bins, 'j', call('i32', 'sub', element('i32', end, j), at(j))) })
  }
  const last = call('i32', 'sub', named(bins), whole(1))
  if (random.chance(0.5) || outputs.length === 0)
    outputs.push({ dims: [bins], result: rowOver(bins, 'j', random.chance(0.5) ? at(j) : at(call('i32', 'sub', last, j))) })
  if (random.chance(0.5)) {
    // Number of elements in the bin of each.
    const inside = call('i32', 'minimum', call('i32', 'maximum', value, whole(0)), last)
    outputs.push({ dims: [body.n], result: rowOver(body.n, 'c', at(inside)) })
  }
  return { ...withRow(body, count, 'i32', false, bins), outputs }
}
