/** Random ops by special feature. Each family draws a signature and a body; draw_op.ts removes unused parts. */

import type { Body } from './body.js'
import {
  call,
  type DType,
  type Expr,
  element,
  load,
  named,
  num,
  type OutputDesc,
  type Result,
  reduce,
  whole,
} from './describe.js'
import { type Context, empty, type OpDraft } from './draft.js'
import { addSpecial, addStatements } from './rows.js'

/** Rows and outputs of an op, in addition to the contents of its draft. */
export interface Drawn {
  readonly rows: readonly { readonly index: string; readonly dim: string }[]
  readonly outputs: readonly OutputDesc[]
}

const typeOf = (draft: OpDraft, { type }: Expr): DType =>
  type === 'bool' ? 'bool' : type === 'i32' ? draft.intType() : draft.floatType()

export function output(draft: OpDraft, dims: readonly string[], result: Result, dtype?: DType): OutputDesc {
  const value = result.kind === 'number' ? result.value : result.loop.value
  const own = dtype ?? (result.kind === 'histogram' ? 'i32' : typeOf(draft, value))
  return { name: draft.fresh('y'), dtype: own, dims, result, ...draft.layoutOf(dims) }
}

/** Inputs over some of the dimensions: at least one over all of them. */
export function inputsOver(draft: OpDraft, dims: readonly string[]): void {
  const { random } = draft
  draft.input(dims)
  for (let more = random.below(3); more > 0; more--) draft.input(random.chance(0.5) ? dims : subset(draft, dims))
  if (random.chance(0.35)) draft.input(random.chance(0.5) ? dims : subset(draft, dims), { dtype: draft.intType() })
  if (random.chance(0.2)) draft.input(random.chance(0.6) ? dims : subset(draft, dims), { dtype: 'bool' })
}

function subset(draft: OpDraft, dims: readonly string[]): string[] {
  const kept = dims.filter(() => draft.random.chance(0.5))
  return kept.length === 0 ? dims.slice(-1) : kept
}

export const indicesOf = (dims: readonly string[]) => dims.map((dim) => ({ name: `i_${dim}`, dim }))
export const rowsOf = (dims: readonly string[]) => dims.map((dim) => ({ index: `i_${dim}`, dim }))

export const outer = (draft: OpDraft, most: number): string[] =>
  ['b', 'm', 'h'].slice(0, draft.random.below(most + 1)).map((name) => draft.dim(name))

/** Numbers of every element. */
export function elementwise(draft: OpDraft): Drawn {
  const dims = [...outer(draft, 3), draft.dim('n', 'row')]
  inputsOver(draft, dims)
  const at: Context = { ...empty, indices: indicesOf(dims) }
  const outputs = Array.from({ length: draft.random.pick([1, 1, 1, 2, 3]) }, () =>
    output(draft, dims, { kind: 'number', value: draft.random.chance(0.12) ? draft.boolean(3, at) : draft.number(4, at) }),
  )
  return { rows: rowsOf(dims), outputs }
}

/** Statements along a row, and outputs from them. */
export function rowwise(draft: OpDraft, special?: Parameters<typeof addSpecial>[1]): Drawn {
  const { random } = draft
  const dims = outer(draft, 2)
  const n = draft.dim('n', special === 'carry' ? 'carried' : 'row')
  inputsOver(draft, [...dims, n])
  const body: Body = { at: { ...empty, indices: indicesOf(dims) }, n }
  const before = special === 'carry' ? 0 : random.below(3)
  const first = addStatements(draft, body, before)
  const middle = special === undefined ? first : addSpecial(draft, special, first)
  const made = special === 'carry' ? middle : addStatements(draft, middle, random.below(3))
  const outputs: OutputDesc[] = [...(made.outputs ?? [])].map((each) => output(draft, [...dims, ...each.dims], each.result))
  const wanted = outputs.length > 0 ? random.below(2) : random.pick([1, 1, 2])
  for (let more = wanted; more > 0; more--) {
    const own = more === wanted ? specialOf(first.at, middle.at, n) : undefined
    if (random.chance(0.75) || own !== undefined) outputs.push(output(draft, [...dims, n], rowResult(draft, made.at, n, own)))
    else if (dims.length > 0 && made.at.numbers.length > 0)
      outputs.push(output(draft, dims, { kind: 'number', value: draft.number(2, made.at) }))
  }
  if (outputs.length === 0) outputs.push(output(draft, [...dims, n], rowResult(draft, made.at, n)))
  return { rows: rowsOf(dims), outputs }
}

/** A row, or a number, that a body added. */
function specialOf(before: Context, after: Context, n: string): Expr | undefined {
  const row = after.rows.slice(before.rows.length).at(-1)
  if (row !== undefined && row.dim === n) return element(row.type, row.name, named('c'))
  const number = after.numbers.slice(before.numbers.length).at(-1)
  return number === undefined ? undefined : named(number.name, number.type)
}

/** A stored row. @param own an expression in its elements, in addition to random ones */
function rowResult(draft: OpDraft, at: Context, n: string, own?: Expr): Result {
  const inside: Context = { ...at, indices: [...at.indices, { name: 'c', dim: n }] }
  if (own === undefined && draft.random.chance(0.08))
    return { kind: 'row', loop: { length: n, index: 'c', value: draft.boolean(3, inside) } }
  if (own?.type === 'bool') return { kind: 'row', loop: { length: n, index: 'c', value: own } }
  const drawn = draft.number(3, inside)
  const isAlone = own === undefined || draft.random.chance(0.3)
  const both = own?.type === drawn.type ? drawn : draft.float(2, inside)
  const float = own?.type === 'i32' && both.type === 'f32' ? call('f32', 'toFloat', own) : own
  const value =
    float === undefined ? drawn : isAlone ? float : call(both.type, draft.random.pick(['add', 'sub', 'maximum']), float, both)
  return { kind: 'row', loop: { length: n, index: 'c', value } }
}

/** Reductions of columns: over rows that lie apart. */
export function columns(draft: OpDraft): Drawn {
  const { random } = draft
  const batch = random.chance(0.4) ? [draft.dim('b')] : []
  const [r, n] = [draft.dim('m', 'row'), draft.dim('n', 'few')]
  const dims = [...batch, r, n]
  inputsOver(draft, dims)
  const at: Context = { ...empty, indices: indicesOf([...batch, n]) }
  const fn = random.pick(['sum', 'max', 'min', 'argmax', 'sum'] as const)
  const value = (index: string): Expr => draft.float(2, { ...at, indices: [...at.indices, { name: index, dim: r }] })
  if (random.chance(0.4)) {
    // An element that also uses the reduction of its column.
    const own: Context = { ...empty, indices: indicesOf(dims) }
    const total = reduce(fn, r, 'k', value('k'))
    const float = total.type === 'i32' ? call('f32', 'toFloat', total) : total
    const made = call('f32', random.pick(['add', 'sub', 'mul', 'maximum']), draft.float(2, own), float)
    return { rows: rowsOf(dims), outputs: [output(draft, dims, { kind: 'number', value: made })] }
  }
  const outputs = Array.from({ length: random.pick([1, 1, 2]) }, () =>
    output(draft, [...batch, n], { kind: 'number', value: reduce(fn, r, 'k', value('k')) }),
  )
  return { rows: rowsOf([...batch, n]), outputs }
}

/** A tensor that becomes one number, or one for each channel. */
export function total(draft: OpDraft): Drawn {
  const { random } = draft
  const channel = random.chance(0.4) ? [draft.dim('h')] : []
  const [m, n] = [draft.dim('m', 'few'), draft.dim('n', 'row')]
  inputsOver(draft, random.chance(0.5) ? [m, ...channel, n] : [...channel, m, n])
  const at: Context = { ...empty, indices: [...indicesOf(channel), { name: 'r', dim: m }, { name: 'c', dim: n }] }
  const fn = random.pick(['sum', 'sum', 'max', 'min'] as const)
  const value = reduce(fn, m, 'r', reduce(fn, n, 'c', draft.float(2, at)))
  return {
    rows: rowsOf(channel),
    outputs: [output(draft, channel, { kind: 'number', value }, random.pick(['f32', 'f32', 'f16']))],
  }
}

/** Windows: each element combines some neighbours, by weights. */
export function windows(draft: OpDraft): Drawn {
  const { random } = draft
  const width = random.pick([2, 3, 4])
  const [b, o, h] = [draft.dim('b'), draft.dim('m', 'few'), draft.dim('n', 'row')]
  const [l, p] = [draft.dim('l', 'few'), draft.derived('p', 'n', 1, width - 1)]
  const x = draft.input([b, l, p])
  const w = draft.input([o, l, draft.dim('u', 'few')], { domain: { kind: 'unit' } })
  const isFixed = random.chance(0.5)
  const place = call('i32', 'add', named('i_n'), named('j'))
  const offset = isFixed ? place : call('i32', 'minimum', place, call('i32', 'sub', named(p), whole(1)))
  const tap = isFixed ? call('i32', 'mod', named('j'), named('u')) : named('j')
  const term = call('f32', 'mul', load('f32', x, named('i_b'), named('k'), offset), load('f32', w, named('i_m'), named('k'), tap))
  const value = reduce('sum', l, 'k', reduce('sum', isFixed ? width : 'u', 'j', term))
  const behind = random.chance(0.5) ? call('f32', 'maximum', value, num(0)) : value
  return { rows: rowsOf([b, o, h]), outputs: [output(draft, [b, o, h], { kind: 'number', value: behind })] }
}
