/** Declarations that loading finds by itself: layouts of a graph, of a program and of a plan. Runs without compiling. */
import { afterEach, expect, it } from 'vitest'
import { splitHeads as headsLayout } from '../../../specs/layouts/split_heads.js'
import { layouts as shippedLayouts } from '../../../specs/layouts.js'
import { mergeHeads } from '../../../specs/ops/merge_heads.js'
import { splitHeads } from '../../../specs/ops/split_heads.js'
import { graph, layout, plan, program, tensor } from '../../../src/index.js'
import { declaredOf } from '../../../src/runtime/api/declared.js'
import { tensor as given } from '../../../src/runtime/api/index.js'
import { layoutSetOf } from '../../../src/runtime/api/load_layouts.js'
import { refusal } from '../../refusal.js'
import { type Opened, openReference } from './open.js'

const byColumns = layout('by_columns', ['r', 'c'], { offset: (i, n) => i.c * n.r + i.r })

/** Heads split and merged again: the value in between has a shipped layout. */
const there = graph('there', {
  inputs: { x: tensor('T', 'b s h d') },
  weights: {},
  build: (g, { x }) => {
    const apart = g.apply(splitHeads, { x }).y
    const together = g.apply(mergeHeads, { x: apart }).y
    return { nodes: { apart, together }, outputs: { together } }
  },
})

const turned = graph('turned', {
  inputs: { x: tensor('f32', 'm k') },
  weights: { w: tensor('f32', 'n k') },
  build: (g, { x }, { w }) => {
    const product = g.matmul('m k, n k -> m n', x, w, byColumns)
    return { nodes: { product }, outputs: { product } }
  },
})

let opened: Opened | undefined
afterEach(async () => opened?.device.close())

it('needs no list of the layouts that a graph declares, shipped ones or its own', async () => {
  opened = openReference()
  const { device } = opened
  const x = given(
    'f32',
    [1, 2, 2, 3],
    Array.from({ length: 12 }, (_, i) => i),
  )
  const heads = await device.load(there, { weights: {}, dtype: 'f32' })
  expect((await heads.run({ x })).together.data).toEqual(x.data)
  const w = given('f32', [2, 3], [1, 0, 0, 0, 1, 0])
  const product = await device.load(turned, { weights: { w } })
  const rows = given('f32', [2, 3], [1, 2, 3, 4, 5, 6])
  expect([...(await product.run({ x: rows })).product.data]).toEqual([1, 2, 4, 5])
})

it('finds layouts of a program and of a given plan, followed by the shipped ones', () => {
  const both = program('both', {
    dims: { b: 1, s: 2, h: 2, d: 3 },
    inputs: { x: tensor('f32', 'b s h d') },
    build: (p, { x }) => ({ y: p.apply(there, { x }).together }),
  })
  expect(both.layouts?.()).toEqual({ split_heads: headsLayout })
  const stored = plan('stored', turned, { groups: {}, edges: { product: { layout: byColumns } } })
  const held = layoutSetOf(declaredOf(both, undefined, undefined), { plan: stored })
  expect(held.layouts).toMatchObject({ ...shippedLayouts, by_columns: byColumns })
  expect(held.conversions.length).toBeGreaterThan(0)
  const own = layoutSetOf(declaredOf(there, undefined, undefined), { layouts: { any: byColumns } })
  expect(own.layouts.by_columns).toBe(byColumns)
})

it('refuses invalid layouts', async () => {
  opened = openReference()
  const { device } = opened
  for (const layouts of [['split_heads'], 'split_heads', [null], { col32: 1 }]) {
    const options = { weights: {}, layouts } as never
    await expect(device.load(there, options)).rejects.toMatchObject({ code: 'load.layouts' })
  }
})

it('refuses two layouts of one name in a graph and in a program', () => {
  const other = layout('split_heads', ['b', 's', 'h', 'd'], { offset: (i, n) => ((i.b * n.s + i.s) * n.h + i.h) * n.d + i.d })
  const mixed = () =>
    graph('mixed', {
      inputs: { x: tensor('T', 'b s h d'), z: tensor('T', 'b s h d', other) },
      weights: {},
      build: (g, { x, z }) => {
        const { y } = g.apply(splitHeads, { x })
        return { nodes: { y }, outputs: { y, z } }
      },
    })
  expect(refusal(mixed)).toMatchObject({ code: 'layout.twice', message: expect.stringContaining('split_heads') })
})
