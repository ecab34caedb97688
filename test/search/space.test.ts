/** The legal groups of a graph, and the covers of it that they form. */
import { expect, it } from 'vitest'
import { costDevice } from '../../src/cost/device.js'
import { planSeconds, searchPlan } from '../../src/search/auto.js'
import { Candidates } from '../../src/search/candidates.js'
import { bestCovers } from '../../src/search/cover.js'
import { type Space, spaceOf, taskOf } from '../../src/search/space.js'
import { gated } from '../fuse/random/gated.js'

const pricing = (m: number) => ({ device: costDevice('h200'), dims: { m, n: 11008, k: 4096 }, dtype: 'f16' }) as const
const draft = gated()
const candidatesAt = (m: number): Candidates =>
  new Candidates(draft.graph(), { name: 'p', graph: 'drawn', groups: [] }, draft.kernels, pricing(m))
const namesOf = ({ groups }: Space): readonly string[] => groups.map(({ group, form }) => `${form} ${group.names.join()}`)
const [norm, gate, up, times] = draft.members()

it('every node is a group, and every legal merge of them', () => {
  const space = spaceOf(candidatesAt(8), { worst: Number.POSITIVE_INFINITY })
  expect(space.complete).toBe(true)
  expect(namesOf(space)).toEqual(
    expect.arrayContaining([
      ...[norm, times].map((name) => `generated ${name}`),
      ...[gate, up].flatMap((name) => [`library ${name}`, `generated ${name}`]),
      `generated ${[gate, up].join()}`,
      `generated ${[gate, up, times].join()}`,
      `generated ${[norm, gate, up, times].join()}`,
    ]),
  )
  expect(new Set(namesOf(space)).size).toBe(space.groups.length)
})

it('a merge that costs more than its parts is left out, and what cannot be one kernel is named with the reason', () => {
  const all = spaceOf(candidatesAt(2048), { worst: Number.POSITIVE_INFINITY })
  const few = spaceOf(candidatesAt(2048), { worst: 0.5 })
  expect(few.groups.length).toBeLessThan(all.groups.length)
  expect(all.refused.map(({ names }) => names.join())).toContain([norm, gate].join())
  for (const { error } of all.refused) expect(error.code).toMatch(/^plan\./)
})

it('a search that may derive few groups says that it is not complete', () => {
  expect(spaceOf(candidatesAt(8), { most: 3 }).complete).toBe(false)
})

it.each([1, 64, 2048])('the best cover of %i rows costs no more than the plan that merging finds', (m) => {
  const space = spaceOf(candidatesAt(m))
  const task = taskOf(
    space,
    space.groups.map(({ group }) => group.cost.seconds),
  )
  const [best] = bestCovers(task, 1)
  const plan = searchPlan('found', draft.graph(), { device: 'h200', ops: draft.kernels, dims: pricing(m).dims })
  const greedy = planSeconds(draft.graph(), plan, draft.kernels, pricing(m))
  expect(best?.cost).toBeLessThanOrEqual(greedy + 1e-12)
})
