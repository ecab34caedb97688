/** Search of a program: which of its graphs are searched, at which sizes, and with how much time. */
import { expect, test } from 'vitest'
import type { SearchVerbOptions } from '../../src/cli/search_options.js'
import { graphsIn, searchGraphs } from '../../src/cli/search_program.js'
import { graph, program, tensor } from '../../src/lang/index.js'
import { cell, mix, stack } from '../projects/stack/specs/index.js'
import { refusal } from '../refusal.js'

const wide = graph('wide', {
  inputs: { x: tensor('T', 'rows width') },
  weights: { weight: tensor('T', 'width width'), bias: tensor('T', 'width') },
  build: (g, { x }, { weight, bias }) => {
    const one = g.matmul('m k, n k -> m n', x, weight)
    const two = g.matmul('m k, n k -> m n', one, weight)
    const mixed = g.apply(mix, { x, product: two, bias }).y
    return { nodes: { one, two, mixed }, outputs: { y: mixed } }
  },
})
const single = graph('single', {
  inputs: { x: tensor('T', 'm n') },
  weights: { bias: tensor('T', 'n') },
  build: (g, { x }, { bias }) => {
    const y = g.apply(mix, { x, product: x, bias }).y
    return { nodes: { y }, outputs: { y } }
  },
})
const both = program('both', {
  dims: { b: 2, s: 3, n: 8 },
  inputs: { x: tensor('T', 'b*s n') },
  build: (p, { x }) => {
    const first = p.apply(single, { x }, p.weights('single')).y
    const near = p.apply(cell, { x: first, before: x }, p.weights('near')).y
    const far = p.apply(cell, { x: near, before: x }, p.weights('far'), {}, { label: 'far' }).y
    return { y: p.apply(wide, { x: far }, p.weights('wide')).y }
  },
})

const options = { dtype: 'f32', minutes: 1, from: 'unfused', plan: 'found', repeats: 8 } as const
const quiet = { log: () => undefined, signal: new AbortController().signal }
const searched: { graph: string; options: SearchVerbOptions }[] = []
const search = async (name: string, given: SearchVerbOptions): Promise<{ graph: string }> => {
  searched.push({ graph: name, options: given })
  return { graph: name }
}

test('graphs with something to fuse are searched, the largest first, once at each size', () => {
  expect(graphsIn(both.of(), [{ s: 1 }, { b: 5 }, { s: 1 }])).toEqual([
    {
      graph: 'wide',
      shapes: [
        { rows: 2, width: 8 },
        { rows: 15, width: 8 },
      ],
    },
    {
      graph: 'cell',
      shapes: [
        { m: 2, n: 8 },
        { m: 15, n: 8 },
      ],
    },
  ])
  expect(graphsIn(stack.of(), [])).toEqual([{ graph: 'cell', shapes: [{ m: 64, n: 256 }] }])
})

test('each has a share of the time, and its plan a file of its own', async () => {
  const results = await searchGraphs(both.of(), options, quiet, search)
  expect(results.map((each) => each.graph)).toEqual(['wide', 'cell'])
  expect(searched.map(({ options: { minutes, of } }) => [minutes <= 1, minutes > 0.4, of])).toEqual([
    [true, true, 'both'],
    [true, true, 'both'],
  ])
  expect(searched[0]?.options.minutes).toBeLessThanOrEqual(0.5)
})

test('options for one graph, and dimensions of others, are refused', async () => {
  const refused = await searchGraphs(both.of(), { ...options, out: 'x.ts' }, quiet, search).catch((error: unknown) => error)
  expect(refused).toMatchObject({ code: 'search.program', hint: 'search its graphs one by one: wide, cell' })
  expect(refusal(() => graphsIn(both.of(), [{ rows: 4 }]))).toMatchObject({
    code: 'search.dims',
    message: 'program both has no dimension rows',
  })
})
