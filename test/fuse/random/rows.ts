/** Random row programs: chains and joins of elementwise ops, norms, softmaxes and reductions, with views that split and join axes. */
import { call, dim, i32, index, local, toFloat } from '../../../src/ir/build.js'
import type { Expr } from '../../../src/ir/expr.js'
import type { ValueId } from '../../../src/ir/graph.js'
import { norm, softmax, softmaxes, someFloat, store } from './bodies.js'
import { type At, type Case, Draft, type Random, type Read } from './draft.js'
import { grouping } from './products.js'

const read = (given: At | undefined, indices: readonly Expr[]): Expr => {
  if (given === undefined) throw new Error('an op without that tensor')
  return given(...indices)
}

/** The same elements as `b s n`, as rows `b*s n`, and with the row taken apart as `b s h d`. */
const forms = [
  { axes: ['b', 's', 'n'], shape: 'b s h*d', extents: { b: 'b', s: 's', n: 'h*d' } },
  { axes: ['m', 'n'], shape: 'b*s h*d', extents: { m: 'b*s', n: 'h*d' } },
  { axes: ['b', 's', 'h', 'd'], shape: 'b s h d', extents: { b: 'b', s: 's', h: 'h', d: 'd' } },
  { axes: ['m', 'h', 'd'], shape: 'b*s h d', extents: { m: 'b*s', h: 'h', d: 'd' } },
] as const

interface Made {
  readonly value: ValueId
  readonly form: (typeof forms)[number]
}

export function rows(random: Random, seed: number): Case {
  const draft = new Draft()
  const start = random.pick(forms)
  let made: Made = { value: draft.input(start.shape), form: start }
  const all: Made[] = [made]
  for (let step = 2 + random.below(4); step > 0; step--) {
    if (random.chance(0.25)) {
      const form = random.pick(forms)
      if (form !== made.form) made = { value: draft.view(made.value, form.shape), form }
    }
    const { form } = made
    const earlier = all.filter((each) => each.form === form && each.value !== made.value)
    const other = earlier.length > 0 && random.chance(0.5) ? random.pick(earlier).value : undefined
    made = { value: someOp(draft, random, made, other), form }
    all.push(made)
    if (random.chance(0.1)) draft.output(made.value)
  }
  draft.output(made.value)
  const dims = { b: 1 + random.below(3), s: 2 + random.below(3), h: 1 + random.below(3), d: 2 * (1 + random.below(2)) }
  return { family: 'rows', seed, draft, groups: grouping(random, draft), dims }
}

function someOp(draft: Draft, random: Random, { value, form }: Made, other: ValueId | undefined): ValueId {
  const axes: readonly string[] = form.axes
  const extents: Readonly<Record<string, string>> = form.extents
  const last = axes.at(-1) ?? ''
  const outer = axes.slice(0, -1)
  const reads: Record<string, Read> = { x: { value, dims: axes } }
  if (other !== undefined) reads.other = { value: other, dims: axes }
  const shape = (list: readonly string[]): string => list.map((axis) => extents[axis] ?? axis).join(' ')
  const places = (at: Readonly<Record<string, Expr>>) => axes.map((axis) => at[axis] ?? i32(0))
  const rowsOf = (at: Readonly<Record<string, Expr>>) => outer.map((axis) => at[axis] ?? i32(0))
  switch (random.below(9)) {
    case 0: {
      const gamma = random.chance(0.5) ? draft.input(shape([last])) : undefined
      if (gamma !== undefined) reads.gamma = { value: gamma, dims: [last] }
      return draft.op({
        over: axes,
        extents,
        reads,
        body: ({ x, other: added, gamma: factor }, at) => {
          const along = (c: Expr): Expr => {
            const own = read(x, [...rowsOf(at), c])
            return added === undefined ? own : call('add', own, added(...rowsOf(at), c))
          }
          return norm(random, last, rowsOf(at), along, factor === undefined ? undefined : (c) => factor(c))
        },
      })
    }
    case 1:
      return draft.op({
        over: axes,
        extents,
        reads: { x: { value, dims: axes } },
        body: ({ x }, at) => softmax(random.pick(softmaxes), last, rowsOf(at), (c) => read(x, [...rowsOf(at), c]), undefined),
      })
    case 2:
      // The row by its own largest element.
      return draft.op({
        over: axes,
        extents,
        reads: { x: { value, dims: axes } },
        body: ({ x }, at) => [
          {
            kind: 'reduce',
            name: 'largest',
            type: 'f32',
            monoid: random.pick(['max', 'min', 'sum']),
            length: dim(last),
            index: 'c1',
            value: call('abs', read(x, [...rowsOf(at), index('c1')])),
          },
          store(
            rowsOf(at),
            last,
            'c2',
            call('div', read(x, [...rowsOf(at), index('c2')]), call('add', toFloat(i32(1)), local('largest'))),
          ),
        ],
      })
    case 3:
      // The element before, or the row mirrored.
      return draft.each(axes, extents, { x: { value, dims: axes } }, ({ x }, at) => {
        const c = at[last] ?? i32(0)
        const place = random.chance(0.5)
          ? call('maximum', call('sub', c, i32(1)), i32(0))
          : call('sub', call('sub', dim(last), i32(1)), c)
        return call('add', read(x, places(at)), read(x, [...rowsOf(at), place]))
      })
    default: {
      const dims = axes.filter(() => random.chance(0.4))
      if (dims.length > 0 && random.chance(0.6)) reads.side = { value: draft.input(shape(dims)), dims }
      return draft.each(axes, extents, reads, (given, at) => {
        const leaves = Object.entries(reads).map(([name, { dims: own }]) =>
          read(
            given[name],
            own.map((axis) => at[axis] ?? i32(0)),
          ),
        )
        return someFloat(random, [...leaves, toFloat(at[last] ?? i32(0))], 3)
      })
    }
  }
}
