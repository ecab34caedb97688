/**
 * Ops of one kernel between which a view adds or drops axes of one element, as the part of a stack with one vector has them: every group is right or
 * refused with a reason, and a search finds the kernel without a note.
 */
import { describe, expect, it } from 'vitest'
import { call, dim, f32, i32, index } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import type { ValueId } from '../../src/ir/graph.js'
import type { PlanDecl } from '../../src/lang/plan.js'
import { planAll } from '../../src/search/plans.js'
import { at } from './attention_draft.js'
import { Draft } from './random/draft.js'
import { judge } from './random/judge.js'

const names = ['p', 'q', 'r', 't']

/** The dimensions of an op over a shape, and what it reads. */
function over(shape: string, x: ValueId) {
  const extents = shape.split(' ')
  const axes = names.slice(0, extents.length)
  return {
    axes,
    extents: Object.fromEntries(axes.map((axis, i) => [axis, extents[i] ?? axis])),
    reads: { x: { value: x, dims: axes } },
  }
}

const ops = {
  doubled: (draft: Draft, x: ValueId, shape: string) => {
    const { axes, extents, reads } = over(shape, x)
    return draft.each(axes, extents, reads, ({ x: given }, places) =>
      call('mul', at(given, ...axes.map((axis) => places[axis])), f32(2)),
    )
  },
  /** An element, and the one at the same distance from the end of every axis. */
  reversed: (draft: Draft, x: ValueId, shape: string) => {
    const { axes, extents, reads } = over(shape, x)
    return draft.each(axes, extents, reads, ({ x: given }, places) => {
      const own = axes.map((axis) => places[axis] ?? i32(0))
      const other = own.map((place, axis) => call('sub', call('sub', dim(axes[axis] ?? ''), i32(1)), place))
      return call('add', call('mul', at(given, ...own), f32(3)), at(given, ...other))
    })
  },
  /** Each element without the sum of its row. */
  centred: (draft: Draft, x: ValueId, shape: string) => {
    const { axes, extents, reads } = over(shape, x)
    const length = dim(axes.at(-1) ?? '')
    return draft.op({
      over: axes,
      extents,
      reads,
      body: ({ x: given }, places) => {
        const rows = axes.slice(0, -1).map((axis) => places[axis] ?? i32(0))
        const element = (column: string): Expr => at(given, ...rows, index(column))
        const value = call('sub', call('mul', element('c'), f32(3)), { kind: 'local', type: 'f32', name: 'sum' })
        return [
          { kind: 'reduce', name: 'sum', type: 'f32', monoid: 'sum', length, index: 'i', value: element('i') },
          { kind: 'storeRow', tensor: 'y', rows, length, index: 'c', value },
        ]
      },
    })
  },
}
type Op = keyof typeof ops
const kinds = Object.keys(ops) as readonly Op[]
const dims = { b: 3, t: 2, n: 4, h: 2, d: 3 }

/** Two ops with a view between them. The first result may be needed too. */
function drawn(from: string, to: string, [one, other]: readonly [Op, Op], isNeeded: boolean): Draft {
  const draft = new Draft()
  const made = ops[one](draft, draft.input(from), from)
  draft.output(ops[other](draft, draft.view(made, to), to))
  if (isNeeded) draft.output(made)
  return draft
}

const verdictOf = (draft: Draft) => judge({ family: 'units', seed: 1, draft, groups: [draft.members()], dims })

/** Views, and those pairs of ops that are not one kernel where the first result is not needed. */
const views: readonly (readonly [from: string, to: string, refused: readonly string[]])[] = [
  ['b 1 n', 'b n', ['centred reversed']],
  ['b n', 'b 1 n', ['centred reversed']],
  ['b n 1', 'b n', ['centred reversed', 'centred centred']],
  ['b n', 'b n 1', ['centred doubled', 'centred reversed', 'centred centred']],
  ['b 1 h*d', 'b h d', ['centred doubled', 'centred reversed', 'centred centred']],
  ['b h d', 'b 1 h*d', ['doubled centred', 'reversed centred', 'centred reversed', 'centred centred']],
  ['b*t 1 h*d', 'b t h d', ['centred doubled', 'centred reversed', 'centred centred']],
]

describe('two ops with a view between them', () => {
  it.each(views)('of "%s" as "%s" are one kernel, or refused with a reason', (from, to, refused) => {
    const pairs = kinds.flatMap((one) => kinds.map((other) => [one, other] as const))
    const found = pairs.flatMap((pair) => (verdictOf(drawn(from, to, pair, false)).kind === 'accepted' ? [] : [pair.join(' ')]))
    expect(found).toEqual(refused)
    for (const one of ['doubled', 'centred'] as const)
      expect(verdictOf(drawn(from, to, [one, 'doubled'], true)).kind, one).not.toBe('wrong')
  })

  it('are refused where the rows of a reduction are split by more than axes of one element', () => {
    expect(verdictOf(drawn('b 1 h*d', 'b h d', ['centred', 'doubled'], false))).toEqual({
      kind: 'refused',
      reason: "plan.illegal: the row of op is split by the other's axes",
    })
  })

  it('are refused where each element of a row of one op is a whole row of the other', () => {
    const reason = 'their rows run over different axes: op has rows "b n" along 1, and op has rows "b" along n'
    expect(verdictOf(drawn('b n 1', 'b n', ['centred', 'centred'], false))).toEqual({
      kind: 'refused',
      reason: `plan.illegal: ${reason}`,
    })
  })
})

it.each([
  ['b n', 'b 1 n'],
  ['b n', '1 b n'],
  ['b 1 n', 'b n'],
])('rows that are seen as others between two ops of "%s" are rows of one kernel: "%s"', (shape, seen) => {
  const draft = new Draft()
  const made = ops.centred(draft, draft.view(ops.doubled(draft, draft.input(shape), shape), seen), seen)
  draft.output(ops.doubled(draft, draft.view(made, shape), shape))
  expect(verdictOf(draft)).toMatchObject({ kind: 'accepted' })
})

describe('a matmul', () => {
  /** Ops that see the result of a matmul with the given rows and 4 columns under another shape. */
  function followed(result: string, seen: string, kind: Op): Draft {
    const draft = new Draft()
    const rows = result.split(' ').slice(0, -1)
    const letters = rows.map((_, i) => `r${i}`).join(' ')
    const product = draft.matmul(`${letters} k, c k -> ${letters} c`, draft.input(`${rows.join(' ')} d`), draft.input('n d'))
    const x = ops[kind](draft, draft.view(product, seen), seen)
    draft.output(ops.doubled(draft, draft.view(x, result), result))
    draft.output(ops.doubled(draft, x, seen))
    return draft
  }

  it.each([
    ['b n', 'b 1 n'],
    ['b n', '1 b n'],
    ['b 1 n', 'b n'],
    ['1 b n', 'b 1 n'],
    ['b*t n', 'b 1 t n'],
    ['b t 1 n', 'b t n'],
  ])('of "%s" has an epilogue that sees it as "%s"', (result, seen) => {
    expect(verdictOf(followed(result, seen, 'doubled'))).toMatchObject({ kind: 'accepted' })
    const reason =
      'an epilogue works on each element of the matmul by itself, row by row: a reduction of a row of the matmul needs a kernel of its own'
    expect(verdictOf(followed(result, seen, 'centred'))).toEqual({ kind: 'refused', reason: `plan.illegal: ${reason}` })
  })

  it.each([
    ['b 1 n', 'b n'],
    ['b n', 'b 1 n'],
    ['b*t 1 n', 'b t n'],
  ])('loads a factor that is made as "%s" and read as "%s"', (made, read) => {
    const draft = new Draft()
    const rows = read
      .split(' ')
      .slice(0, -1)
      .map((_, i) => `r${i}`)
      .join(' ')
    const factor = draft.view(ops.centred(draft, draft.input(made), made), read)
    draft.output(draft.matmul(`${rows} k, c k -> ${rows} c`, factor, draft.input('d n')))
    expect(verdictOf(draft)).toMatchObject({ kind: 'accepted' })
  })
})

describe('a part of a stack with one vector', () => {
  /** One of the vectors of each row, and an op that sees it as heads. */
  function part(seen: string): Draft {
    const draft = new Draft()
    const x = { value: draft.input('b*t g h*d'), dims: ['m', 'j', 'n'] }
    const first = call('sub', dim('j'), i32(1))
    const own = draft.each(['m', 'i', 'n'], { m: 'b*t', i: '1', n: 'h*d', j: 'g' }, { x }, ({ x: given }, { m, i = i32(0), n }) =>
      at(given, m, call('add', first, i), n),
    )
    draft.output(ops.reversed(draft, draft.view(own, seen), seen))
    return draft
  }
  const auto: PlanDecl = { name: 'auto', graph: 'drawn', groups: [], auto: { device: 'h200', dims: { ...dims, g: 5 } } }

  it.each(['b t h d', 'b*t h d', 'b*t h*d'])('is one kernel with an op that sees it as "%s"', (seen) => {
    const draft = part(seen)
    const { left, kernels } = planAll([auto], { drawn: { graph: draft.graph() } }, [...draft.kernels.values()])
    expect(left).toEqual([])
    expect(kernels).toHaveLength(1)
    expect(judge({ family: 'units', seed: 1, draft, groups: [draft.members()], dims: { ...dims, g: 5 } }).kind).toBe('accepted')
  })

  it('leaves no axis of one element in the kernel', () => {
    const draft = part('b*t h*d')
    const { kernels } = planAll([auto], { drawn: { graph: draft.graph() } }, [...draft.kernels.values()])
    expect(kernels.flatMap(({ rows }) => rows)).toHaveLength(1)
  })
})
