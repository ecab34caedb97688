/** Names of groups become names of kernels: two kernels of one name, and kernels with names of ops, are refused with a repair. */
import { graph, plan, tensor } from 'heddle'
import { beforeAll, describe, expect, it } from 'vitest'
import { add } from '../../specs/ops/add.js'
import { softmax } from '../../specs/ops/softmax.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { planAll } from '../../src/search/plans.js'
import { refusal } from '../refusal.js'

/** Three numbers added, or two of them twice. */
const sums = (name: string, isTwice: boolean) =>
  graph(name, {
    inputs: { x: tensor('T', 'm n'), y: tensor('T', 'm n'), z: tensor('T', 'm n') },
    weights: {},
    build: (g, { x, y, z }) => {
      const first = g.apply(add, { x, y }).z
      const second = g.apply(add, { x: first, y: isTwice ? first : z }).z
      return { nodes: { first, second }, outputs: { second } }
    },
  })
const [three, twice] = [sums('three', false), sums('twice', true)]
const both = { three, twice }
const under = (of: typeof three, kernel: string) => plan('p', of, { groups: { [kernel]: ['first', 'second'] } })

let ops: readonly Kernel[]
beforeAll(() => {
  ops = readSpecsOrThrow({ root: process.cwd(), specs: ['specs/ops/add.ts', 'specs/ops/softmax.ts'] }).kernels
})

/** Matmuls with scaled rows, twice; with other names of tensors, or other axes. */
const attended = (name: string, isTurned: boolean) =>
  graph(name, {
    inputs: {
      a: tensor('T', 's d'),
      b: tensor('T', 't d'),
      c: tensor('T', 't e'),
      other: tensor('T', 's d'),
      another: tensor('T', isTurned ? 'd t' : 't d'),
    },
    weights: {},
    build: (g, { a, b, c, other, another }) => {
      const scores = g.matmul('s d, t d -> s t', a, b)
      const weights = g.apply(softmax, { x: scores }).y
      const first = g.matmul('s t, t e -> s e', weights, c)
      const otherScores = g.matmul(isTurned ? 's d, d t -> s t' : 's d, t d -> s t', other, another)
      const otherWeights = g.apply(softmax, { x: otherScores }).y
      const second = g.matmul('s t, t e -> s e', otherWeights, c)
      return { nodes: { scores, weights, first, otherScores, otherWeights, second }, outputs: { first, second } }
    },
  })
const twoAttentions = (of: ReturnType<typeof attended>) =>
  plan('p', of, {
    groups: {
      attend: [
        ['scores', 'weights', 'first'],
        ['otherScores', 'otherWeights', 'second'],
      ],
    },
  })

describe('occurrences of a group', () => {
  it('are one kernel if only names of tensors differ', () => {
    const of = attended('alike', false)
    const planned = planAll([twoAttentions(of)], { alike: of }, ops)
    const calls = planned.graphs.p?.alike?.nodes.flatMap((node) =>
      node.kind === 'op' && node.op === 'attend' ? [Object.keys(node.inputs)] : [],
    )
    expect(calls).toHaveLength(2)
    expect(calls?.[0]).toEqual(calls?.[1])
  })

  it('are refused if they differ in more', () => {
    const of = attended('apart', true)
    expect(refusal(() => planAll([twoAttentions(of)], { apart: of }, ops)).code).toBe('plan.differ')
  })
})

describe('a name of a group', () => {
  it('may occur in several plans for one kernel', () => {
    expect(
      [...planAll([under(three, 'all'), { ...under(three, 'all'), name: 'q' }], both, ops).kernels].map((k) => k.name),
    ).toContain('all')
  })

  it('is refused for a second kernel that differs', () => {
    const error = refusal(() => planAll([under(three, 'all'), under(twice, 'all')], both, ops))
    expect([error.code, error.message, error.hint]).toEqual([
      'plan.differ',
      'plan p derives a kernel all that differs from another of that name',
      'rename the group',
    ])
  })

  it('is refused if it is the name of an op', () => {
    const error = refusal(() => planAll([under(three, 'add')], both, ops))
    expect([error.code, error.message, error.hint]).toEqual([
      'plan.differ',
      'plan p: group add has the name of an op',
      'rename the group',
    ])
  })

  it('is refused for a group of nothing', () => {
    const empty = { ...under(three, 'all'), groups: [{ kernel: 'all', occurrences: [[]] }] }
    const error = refusal(() => planAll([empty], both, ops))
    expect([error.code, error.message]).toEqual(['plan.empty', 'plan p: group all holds no node'])
  })
})
