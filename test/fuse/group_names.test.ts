/** Names of groups become names of kernels: two kernels of one name, and kernels called like ops, are refused with what to do. */
import { graph, plan, tensor } from 'heddle'
import { beforeAll, describe, expect, it } from 'vitest'
import { add } from '../../specs/ops/add.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import { planAll } from '../../src/fuse/plans.js'
import type { Kernel } from '../../src/ir/kernel.js'
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
  ops = readSpecsOrThrow({ root: process.cwd(), specs: ['specs/ops/add.ts'] }).kernels
})

describe('a name of a group', () => {
  it('may stand in several plans for one kernel', () => {
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

  it('is refused where it is that of an op', () => {
    const error = refusal(() => planAll([under(three, 'add')], both, ops))
    expect([error.code, error.message, error.hint]).toEqual([
      'plan.differ',
      'plan p: a group is called add, and so is an op',
      'rename the group',
    ])
  })

  it('is refused for a group of nothing', () => {
    const empty = { ...under(three, 'all'), groups: [{ kernel: 'all', occurrences: [[]] }] }
    const error = refusal(() => planAll([empty], both, ops))
    expect([error.code, error.message]).toEqual(['plan.empty', 'plan p: group all holds no node'])
  })
})
