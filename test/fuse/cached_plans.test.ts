/** Plans, groups and sources with unchanged inputs come from the cache; those that depend on a changed op are recomputed. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { generate } from '../../src/emit/generate.js'
import { structuralHash } from '../../src/ir/structural_hash.js'
import { graph } from '../../src/lang/graph.js'
import { op } from '../../src/lang/op.js'
import { plan } from '../../src/lang/plan.js'
import { tensor } from '../../src/lang/tensor.js'
import { type Memo, openMemo } from '../../src/memo.js'
import { planAll } from '../../src/search/plans.js'
import { read } from '../frontend/refuse.js'

let root = ''
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'heddle-kept-plans-'))
})
afterAll(() => rm(root, { recursive: true, force: true }))

const names = ['scaled', 'shifted', 'squared'] as const
const bodies = { scaled: 'x(c) * 2', shifted: 'x(c) + 1', squared: 'x(c) * x(c)' }
const signature = { dims: ['n'], inputs: { x: tensor('f32', 'n') }, outputs: { y: tensor('f32', 'n') } }
const [scaled, shifted, squared] = names.map((name) =>
  op(name, {
    ...signature,
    body:
      ({ x }) =>
      (c) => ({ y: x(c) }),
  }),
)

/** A graph of two ops, each of which is a node. */
const pair = (name: string, first: typeof scaled, second: typeof scaled) =>
  graph(name, {
    inputs: { x: tensor('f32', 'n') },
    weights: {},
    build: (g, { x }) => {
      if (first === undefined || second === undefined) throw new Error('no op')
      const { y: a } = g.apply(first, { x })
      const { y: b } = g.apply(second, { x: a })
      return { nodes: { a, b }, outputs: { y: b } }
    },
  })
const graphs = { one: pair('one', scaled, shifted), two: pair('two', scaled, squared) }
const plans = [
  plan('p', graphs.one, { groups: { first: ['a', 'b'] } }),
  plan('p', graphs.two, { groups: { second: ['a', 'b'] } }),
]

/** Results of the plans with these bodies, compared with a run without a cache; and the kinds of entries that were recomputed. */
function made(given: Readonly<Record<string, string>>, threads?: 64 | 128): string[] {
  const text = names.map(
    (name) => `export const ${name} = op('${name}', { dims: ['n'], inputs: { x: tensor('f32', 'n') },
  outputs: { y: tensor('f32', 'n') }, body: ({ x }) => (c) => ({ y: ${given[name]} }) })\n`,
  )
  const { kernels: ops } = read(`import { op, tensor } from 'heddle'\n${text.join('')}`)
  const kept = openMemo(root)
  const kinds: string[] = []
  const seen: Memo = {
    ...kept,
    of: (kind, parts, make) =>
      kept.of(kind, parts, () => {
        kinds.push(kind)
        return make()
      }),
  }
  const planned = planAll(plans, graphs, ops, [], new Set<string>(), seen)
  // A copy has no key that was read with it.
  expect(structuralHash(structuredClone(planned))).toBe(structuralHash(planAll(plans, graphs, ops)))
  const choice = { kind: 'elementwise', vec: 1, threads: threads ?? 64 } as const
  const variants = [{ fromRows: 1, choice, measured: [{ rows: 1, rules: 2, choice: 1 }] }]
  const where = { dtype: '', length: 64, architecture: 'simt', device: 'some' }
  const tuning = threads !== undefined ? { file: 'tuning.json', entries: [{ kernel: 'second', ...where, variants }] } : undefined
  const texts = generate(planned.kernels, planned.graphs, [], tuning, {}, { kept: seen })
  expect(texts).toEqual(generate(planned.kernels, planned.graphs, [], tuning))
  return kinds
}

it('recomputes only what depends on a change', () => {
  expect(made(bodies)).toEqual(['plan', 'group', 'plan', 'group', 'text', 'text'])
  expect(made(bodies)).toEqual([])
  expect(made({ ...bodies, squared: 'x(c) + x(c)' })).toEqual(['plan', 'group', 'text'])
  expect(made({ ...bodies, scaled: 'x(c) * 3' })).toEqual(['plan', 'group', 'plan', 'group', 'text', 'text'])
  expect(made(bodies)).toEqual([])
})

it('regenerates the source of a kernel with a new measurement', () => {
  expect(made(bodies, 64)).toEqual(['text', 'text'])
  expect(made(bodies, 64)).toEqual([])
  expect(made(bodies, 128)).toEqual(['text'])
})
