/**
 * Random groups of two matmuls with a softmax between them: axes in any order, repeated or shared heads, computed operands, masks of any
 * conditions, scores changed by other tensors, results with a layout, a gate or an addend.
 */
import { call, dim, f32, i32, toFloat } from '../../../src/ir/build.js'
import type { Expr } from '../../../src/ir/expr.js'
import type { ValueId } from '../../../src/ir/graph.js'
import { mask, norm, noSoftmaxes, type SoftmaxForm, softmax, softmaxes, someFloat } from './bodies.js'
import { type At, type Case, Draft, type Random } from './draft.js'

type Axes = readonly string[]

/** Axes, by letter: `b` sequences, `h` heads, `s` queries, `t` keys, `d` and `e` elements. */
interface Form {
  readonly batch: Axes
  readonly heads: Axes
  /** Heads of keys and values. */
  readonly keyHeads: Axes
  /** The letter and the extent of keys. */
  readonly keys: string
  readonly valueDim: string
}

/** Extent of each letter in the graph. */
const extentOf = (axis: string, form: Form): string => (axis === 't' ? form.keys : axis === 'e' ? form.valueDim : axis)

export function attention(random: Random, seed: number): Case {
  const draft = new Draft()
  const heads = random.pick([[], ['h'], ['h'], ['h'], ['g', 'r']])
  const form: Form = {
    batch: random.chance(0.8) ? ['b'] : [],
    heads,
    keyHeads: heads.length === 2 ? ['g'] : random.chance(0.85) ? heads : [],
    keys: random.chance(0.6) ? 's' : 't',
    valueDim: random.chance(0.6) ? 'd' : 'e',
  }
  const extents = Object.fromEntries(['b', 'h', 'g', 'r', 's', 't', 'd', 'e'].map((axis) => [axis, extentOf(axis, form)]))
  const order = (axes: Axes, last: string): string[] => {
    const made = random.chance(0.3) ? random.shuffle(axes) : [...axes]
    return random.chance(0.06) ? random.shuffle([...made, last]) : [...made, last]
  }
  const queryAxes = order([...form.batch, 's', ...form.heads], 'd')
  const keyAxes = order([...form.batch, 't', ...form.keyHeads], 'd')
  const valueAxes = order([...form.batch, 't', ...form.keyHeads], 'e')
  const scoreAxes = random.chance(0.06)
    ? random.shuffle([...form.batch, ...form.heads, 's', 't'])
    : [...form.batch, ...form.heads, 's', 't']
  const repeated = form.keyHeads.includes('h') && random.chance(0.3)
  const operand = (axes: string[], which: 'query' | 'key' | 'value'): ValueId =>
    operandOf({ draft, random, extents, axes, repeated: repeated && which !== 'query', which })
  const query = operand(queryAxes, 'query')
  const key = operand(keyAxes, 'key')
  const value = operand(valueAxes, 'value')

  const first = random.chance(0.8)
    ? draft.matmul(`${queryAxes.join(' ')}, ${keyAxes.join(' ')} -> ${scoreAxes.join(' ')}`, query, key)
    : draft.matmul(`${keyAxes.join(' ')}, ${queryAxes.join(' ')} -> ${scoreAxes.join(' ')}`, key, query)
  const logits = scored({ draft, random, extents, scoreAxes, form }, first)
  const weights = weighed({ draft, random, extents, scoreAxes, form }, logits)
  const resultAxes = order([...form.batch, 's', ...form.heads], 'e')
  // The second matmul may use any letters for its axes.
  const letters = random.chance(0.3)
    ? Object.fromEntries(['b', 'h', 'g', 'r', 's', 't', 'd', 'e'].map((axis) => [axis, `${axis}x`]))
    : {}
  const named = (axes: Axes): string => axes.map((axis) => letters[axis] ?? axis).join(' ')
  const context = random.chance(0.8)
    ? draft.matmul(`${named(scoreAxes)}, ${named(valueAxes)} -> ${named(resultAxes)}`, weights, value)
    : draft.matmul(`${named(valueAxes)}, ${named(scoreAxes)} -> ${named(resultAxes)}`, value, weights)
  draft.output(behind({ draft, random, extents, resultAxes }, context))

  const members = draft.members()
  const split = random.chance(0.15) ? 1 + random.below(members.length - 1) : members.length
  const dropped = random.chance(0.1) ? random.pick(members) : undefined
  const kept = members.filter((name) => name !== dropped)
  const groups = [kept.slice(0, split), kept.slice(split)].filter((group) => group.length > 0)
  const sizes = {
    b: 2,
    g: 2,
    r: 1 + random.below(3),
    h: 4,
    s: 1 + random.below(6),
    t: 1 + random.below(7),
    d: 2 * (1 + random.below(2)),
    e: 3,
  }
  return { family: 'attention', seed, draft, groups, dims: { ...sizes, n: repeated ? 2 : 4 }, masked: { logits, weights } }
}

interface OperandDraft {
  readonly draft: Draft
  readonly random: Random
  readonly extents: Readonly<Record<string, string>>
  readonly axes: string[]
  readonly repeated: boolean
  readonly which: 'query' | 'key' | 'value'
}

/** An operand with the given axes: an input, or the result of ops on one. */
function operandOf({ draft, random, extents, axes, repeated, which }: OperandDraft): ValueId {
  const last = axes.at(-1) ?? ''
  const shape = (list: Axes): string => list.map((axis) => extents[axis] ?? axis).join(' ')
  const reading = (value: ValueId, dims: Axes) => ({ x: { value, dims } })
  let made: ValueId
  if (repeated) {
    // Fewer heads in memory: each is seen by several.
    const own = axes.map((axis) => (axis === 'h' ? 'n' : axis))
    const input = draft.input(own.map((axis) => extents[axis] ?? axis).join(' '))
    made = draft.each(axes, extents, reading(input, own), ({ x }, at) => {
      const few = call('idiv', at.h ?? i32(0), call('idiv', dim('h'), dim('n')))
      return load(
        x,
        own.map((axis) => (axis === 'n' ? few : (at[axis] ?? i32(0)))),
      )
    })
  } else if (random.chance(0.2) && axes.length > 2) {
    // Layout after a projection: axes in another order, two of them adjacent in memory.
    const own = random.shuffle(axes.slice(0, -1))
    const flat = `${own
      .slice(0, -1)
      .map((axis) => extents[axis] ?? axis)
      .join('*')} ${extents[own.at(-1) ?? '']}*${extents[last]}`
    const input = draft.view(draft.input(flat), shape([...own, last]))
    made = draft.each(axes, extents, reading(input, [...own, last]), ({ x }, at) =>
      load(
        x,
        [...own, last].map((axis) => at[axis] ?? i32(0)),
      ),
    )
  } else made = draft.input(shape(axes))
  const all = (given: At | undefined, at: Readonly<Record<string, Expr>>, other: Readonly<Record<string, Expr>> = {}) =>
    load(
      given,
      axes.map((axis) => other[axis] ?? at[axis] ?? i32(0)),
    )
  if (random.chance(0.12)) {
    // A rotation of halves by a table.
    const table = draft.input(shape([which === 'query' ? 's' : 't', last]))
    const half = call('idiv', dim(last), i32(2))
    const place = which === 'query' ? 's' : 't'
    return draft.each(
      axes,
      extents,
      { ...reading(made, axes), angles: { value: table, dims: [place, last] } },
      ({ x, angles }, at) => {
        const c = at[last] ?? i32(0)
        const turned = call(
          'select',
          call('lt', c, half),
          call('neg', all(x, at, { [last]: call('minimum', call('add', c, half), call('sub', dim(last), i32(1))) })),
          all(x, at, { [last]: call('maximum', call('sub', c, half), i32(0)) }),
        )
        const angle = load(angles, [at[place] ?? i32(0), c])
        return call('add', call('mul', all(x, at), call('cos', angle)), call('mul', turned, call('sin', angle)))
      },
    )
  }
  if (random.chance(0.12)) {
    const gamma = draft.input(shape([last]))
    return draft.op({
      over: axes,
      extents,
      reads: { ...reading(made, axes), gamma: { value: gamma, dims: [last] } },
      body: ({ x, gamma: given }, at) =>
        norm(
          random,
          last,
          axes.slice(0, -1).map((axis) => at[axis] ?? i32(0)),
          (c) => all(x, at, { [last]: c }),
          (c) => load(given, [c]),
        ),
    })
  }
  if (random.chance(0.15)) {
    const bias = draft.input(shape([last]))
    return draft.each(axes, extents, { ...reading(made, axes), bias: { value: bias, dims: [last] } }, ({ x, bias: given }, at) =>
      call('add', all(x, at), load(given, [at[last] ?? i32(0)])),
    )
  }
  return made
}

const load = (given: At | undefined, indices: readonly Expr[]): Expr => {
  if (given === undefined) throw new Error('an op without that tensor')
  return given(...indices)
}

interface ScoreDraft {
  readonly draft: Draft
  readonly random: Random
  readonly extents: Readonly<Record<string, string>>
  readonly scoreAxes: Axes
  readonly form: Form
}

/** Ops between the first matmul and the softmax. */
function scored({ draft, random, extents, scoreAxes, form }: ScoreDraft, product: ValueId): ValueId {
  let value = product
  const shape = (list: Axes): string => list.map((axis) => extents[axis] ?? axis).join(' ')
  const steps: ('scale' | 'tensor' | 'slope' | 'any')[] = random.chance(0.7) ? ['scale'] : []
  for (let more = random.below(3); more > 0; more--) steps.push(random.pick(['tensor', 'slope', 'any']))
  for (const step of steps) {
    const x = { value, dims: scoreAxes }
    const self = (given: At | undefined, at: Readonly<Record<string, Expr>>) =>
      load(
        given,
        scoreAxes.map((axis) => at[axis] ?? i32(0)),
      )
    if (step === 'scale')
      value = draft.each(scoreAxes, extents, { x }, ({ x: given }, at) => call('mul', self(given, at), f32(0.25)))
    else if (step === 'any')
      value = draft.each(scoreAxes, extents, { x }, ({ x: given }, at) =>
        someFloat(random, [self(given, at), self(given, at), toFloat(call('sub', at.t ?? i32(0), at.s ?? i32(0)))], 2),
      )
    else {
      const wanted = scoreAxes.filter(() => random.chance(0.5))
      const axes = wanted.length === 0 ? ['t'] : wanted
      const other = draft.input(shape(axes))
      const sloped = step === 'slope'
      value = draft.each(scoreAxes, extents, { x, other: { value: other, dims: axes } }, ({ x: given, other: bias }, at) => {
        const read = load(
          bias,
          axes.map((axis) => at[axis] ?? i32(0)),
        )
        const distance = toFloat(call('sub', at.t ?? i32(0), at.s ?? i32(0)))
        return call('add', self(given, at), sloped ? call('mul', read, distance) : read)
      })
    }
  }
  const masks = random.pick([0, 1, 1, 1, 2])
  for (let more = masks; more > 0; more--) value = hide({ draft, random, extents, scoreAxes, form }, value)
  return value
}

/** One mask, by a choice or by a term that is added. */
function hide({ draft, random, extents, scoreAxes, form }: ScoreDraft, value: ValueId): ValueId {
  const [batch] = form.batch
  const lengths = batch !== undefined && random.chance(0.5) ? draft.input(batch, 'length') : undefined
  const documents = batch !== undefined && form.keys === 's' && random.chance(0.3) ? draft.input(`${batch} s`, 'id') : undefined
  const reads = {
    x: { value, dims: scoreAxes },
    ...(lengths === undefined ? {} : { lengths: { value: lengths, dims: ['b'] } }),
    ...(documents === undefined
      ? {}
      : { own: { value: documents, dims: ['b', 's'] }, other: { value: documents, dims: ['b', 't'] } }),
  }
  const low = f32(random.chance(0.5) ? -1e30 : Number.NEGATIVE_INFINITY)
  const style = random.below(3)
  return draft.each(scoreAxes, extents, reads, ({ x, lengths: ends, own, other }, at) => {
    const [b, s, t] = [at.b ?? i32(0), at.s ?? i32(0), at.t ?? i32(0)]
    const pair = { i: s, j: t, keys: dim('t'), length: ends?.(b), own: own?.(b, s), other: other?.(b, t) }
    const condition = mask(random, pair, 2)
    const self = load(
      x,
      scoreAxes.map((axis) => at[axis] ?? i32(0)),
    )
    if (style === 0) return call('select', condition, self, low)
    if (style === 1) return call('select', call('not', condition), low, self)
    return call('add', self, call('select', condition, f32(0), low))
  })
}

/** The softmax, over plain rows or over adjacent ones as one axis. */
function weighed({ draft, random, extents, scoreAxes, form }: ScoreDraft, logits: ValueId): ValueId {
  const kind: SoftmaxForm = random.chance(0.07) ? random.pick(noSoftmaxes) : random.chance(0.4) ? 'plain' : random.pick(softmaxes)
  const last = scoreAxes.at(-1) ?? 't'
  const withSink = kind === 'sink' && form.heads[0] !== undefined ? form.heads[0] : undefined
  const flat = withSink === undefined && random.chance(0.5)
  const over = flat ? ['m', last] : scoreAxes
  const rows = scoreAxes
    .slice(0, -1)
    .map((axis) => extents[axis] ?? axis)
    .join('*')
  const seen = flat ? draft.view(logits, `${rows} ${extents[last]}`) : logits
  const sink = withSink === undefined ? undefined : draft.input(withSink)
  const made = draft.op({
    over,
    extents: { ...extents, m: rows },
    reads: {
      x: { value: seen, dims: over },
      ...(sink === undefined || withSink === undefined ? {} : { sink: { value: sink, dims: [withSink] } }),
    },
    body: ({ x, sink: given }, at) => {
      const outer = over.slice(0, -1).map((axis) => at[axis] ?? i32(0))
      return softmax(kind, last, outer, (c) => load(x, [...outer, c]), given?.(at[withSink ?? ''] ?? i32(0)))
    },
  })
  return flat ? draft.view(made, scoreAxes.map((axis) => extents[axis] ?? axis).join(' ')) : made
}

interface ResultDraft {
  readonly draft: Draft
  readonly random: Random
  readonly extents: Readonly<Record<string, string>>
  readonly resultAxes: Axes
}

/** Ops after the second matmul. */
function behind({ draft, random, extents, resultAxes }: ResultDraft, context: ValueId): ValueId {
  let [value, axes] = [context, resultAxes]
  const shape = (list: Axes): string => list.map((axis) => extents[axis] ?? axis).join(' ')
  if (random.chance(0.25)) {
    const [from, to] = [axes, [...random.shuffle(axes.slice(0, -1)), axes.at(-1) ?? 'e']]
    value = draft.each(to, extents, { x: { value, dims: from } }, ({ x }, at) =>
      load(
        x,
        from.map((axis) => at[axis] ?? i32(0)),
      ),
    )
    axes = to
  }
  if (random.chance(0.35)) {
    const used = random.chance(0.5) ? axes : axes.filter(() => random.chance(0.5))
    const read = used.length === 0 ? axes.slice(-1) : used
    const other = draft.input(shape(read))
    const own = axes
    value = draft.each(
      own,
      extents,
      { x: { value, dims: own }, other: { value: other, dims: read } },
      ({ x, other: given }, at) => {
        const result = load(
          x,
          own.map((axis) => at[axis] ?? i32(0)),
        )
        return someFloat(
          random,
          [
            result,
            load(
              given,
              read.map((axis) => at[axis] ?? i32(0)),
            ),
            result,
          ],
          2,
        )
      },
    )
  }
  return value
}
