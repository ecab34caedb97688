import { describe, expect, it } from 'vitest'
import { casesOf, checkedElements, inputsOf, whyNone } from '../../src/verify/cases.js'
import { entryOf } from './faulty.js'

/** An op that sums the rows of each column. */
const transposedSum = {
  buffers: [
    { name: 'x', access: 'in' as const, dtype: 'f32' as const, dims: ['m', 'n'], layout: 'row' },
    { name: 'y', access: 'out' as const, dtype: 'f32' as const, dims: ['n'], layout: 'row' },
  ],
  facts: { inputs: {}, dims: {}, attrs: {}, results: {}, loops: ['m', 'n'] },
}

describe('casesOf', () => {
  const cases = casesOf(entryOf('layer_norm', 'f16'))
  const lengths = new Set(cases.map(({ dims }) => dims.n))

  it('covers one element, both sides of a vector, of a warp and of 1024, and longer rows', () => {
    for (const n of [1, 7, 8, 9, 31, 32, 33, 1023, 1024, 1025, 8193]) expect(lengths, `n = ${n}`).toContain(n)
  })

  it('covers more rows than the limit of a grid dimension', () => {
    expect(Math.max(...cases.map(({ dims }) => dims.m ?? 0))).toBeGreaterThan(65_535)
  })

  it('covers buffers that start between vectors', () => {
    expect(new Set(cases.map(({ shift }) => shift))).toEqual(new Set([0, 1, 3]))
  })

  it('covers every length, every choice of outer extents and every shift with both draws if sizes rotate', () => {
    const types = ['f32', 'f16', 'bf16'] as const
    const turns = types.map((type) => casesOf(entryOf('split_heads', type), undefined, 'by turns'))
    const each = types.map((type) => casesOf(entryOf('split_heads', type)))
    for (const [i, all] of each.entries()) {
      const few = turns[i] ?? []
      expect(few.length).toBeLessThan(0.25 * all.length)
      expect(all.map(({ name }) => name)).toEqual(expect.arrayContaining(few.map(({ name }) => name)))
      const met = (list: typeof all, tell: (test: (typeof all)[number]) => unknown) =>
        new Set(list.map((test) => `${tell(test)}`))
      const told: ((test: (typeof all)[number]) => unknown)[] = [
        ({ dims }) => ((dims.b ?? 0) > 100 ? 'any of many' : dims.d),
        ({ dims, draw }) => `${dims.b} ${dims.s} ${dims.h} ${draw}`,
        ({ shift }) => shift,
      ]
      for (const tell of told) expect(met(few, tell)).toEqual(met(all, tell))
    }
    // Instances share schedules, and take other turns.
    const size = ({ dims, draw }: (typeof each)[number][number]) => JSON.stringify({ dims, draw })
    const ofHalves = new Set(turns[1]?.map(size))
    expect(turns[2]?.filter((test) => !ofHalves.has(size(test))).length).toBeGreaterThan(20)
  })

  it('draws integers if statistics of few values would be ill-conditioned, in every rotation', () => {
    const short = casesOf(entryOf('layer_norm', 'f16'), undefined, 'by turns').filter(({ dims }) => (dims.n ?? 0) < 31)
    expect(short.length).toBeGreaterThan(9)
    for (const { draw } of short) expect(draw).toBe('integer')
  })

  it('names every case once', () => {
    expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length)
  })

  it('keeps fixed dimensions', () => {
    const fixed = casesOf({ ...entryOf('softmax', 'f32'), fixedDims: { n: 128 } })
    expect(new Set(fixed.map(({ dims }) => dims.n))).toEqual(new Set([128]))
  })

  it('sweeps every other dimension if the row is fixed, and spans more than a hundred cases', () => {
    const heads = { ...entryOf('split_heads', 'f16'), fixedDims: { d: 64 } }
    const fixed = casesOf(heads)
    expect(new Set(fixed.map(({ dims: { d } }) => d))).toEqual(new Set([64]))
    expect(fixed.length).toBeGreaterThan(100)
    for (const swept of ['b', 's', 'h']) {
      const extents = new Set(fixed.map(({ dims }) => dims[swept]))
      for (const extent of [1, 31, 32, 33, 129]) expect(extents, `${swept} = ${extent}`).toContain(extent)
    }
    // The twin: if the row is free, outer dimensions take few extents.
    expect(new Set(casesOf({ ...heads, fixedDims: {} }).map(({ dims }) => dims.s)).size).toBeLessThan(6)
  })

  it('varies every outer dimension, of which a kernel may have many', () => {
    const axes = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'n']
    const buffers = transposedSum.buffers.map((buffer) => ({ ...buffer, dims: axes }))
    const wide = { ...entryOf('softmax', 'f32'), dims: axes, buffers, facts: { ...transposedSum.facts, loops: ['n'] } }
    for (const drawn of ['each', 'by turns'] as const) {
      const found = casesOf(wide, checkedElements.usual, drawn)
      for (const axis of axes) expect(new Set(found.map(({ dims }) => dims[axis])).size, axis).toBeGreaterThan(1)
    }
  })

  it('gives an attribute the extent that facts state of it', () => {
    const entry = entryOf('softmax', 'f32')
    const twice = { type: 'i32' as const, name: 'k', default: 1 }
    const facts = { ...transposedSum.facts, loops: ['n'], dims: { k: { equal: ['mul', 2, 'n'] as const } } }
    const found = casesOf({ ...entry, attrs: [twice], facts })
    expect(found.map(({ attrs }) => attrs.k)).toEqual(found.map(({ dims }) => 2 * (dims.n ?? 0)))
    // The twin: without the fact it keeps its default.
    expect(new Set(casesOf({ ...entry, attrs: [twice], facts: { ...facts, dims: {} } }).map(({ attrs }) => attrs.k))).toEqual(
      new Set([1]),
    )
  })

  it('knows no kernel by its name', () => {
    const named = casesOf({ ...entryOf('embedding_lookup', 'f32'), op: 'unheard_of' })
    expect(named.map(({ dims }) => dims)).toEqual(casesOf(entryOf('embedding_lookup', 'f32')).map(({ dims }) => dims))
  })

  it('refuses integers whose values no fact states', () => {
    const entry = entryOf('embedding_lookup', 'f32')
    const facts = { inputs: {}, dims: {}, attrs: {}, results: {}, loops: [] }
    expect(() => casesOf({ ...entry, facts })).toThrow('embedding_lookup reads integers whose values no fact states: ids')
  })

  it('gives every length to reduced loops, and to the dimension that facts name', () => {
    const summed = new Set(casesOf({ ...entryOf('layer_norm', 'f32'), ...transposedSum }).map(({ dims }) => dims.m))
    for (const m of [1, 31, 33, 129, 1025]) expect(summed, `m = ${m}`).toContain(m)
    const parts = new Set(casesOf({ ...entryOf('beam_select'), fixedDims: { k: 4 } }).map(({ dims }) => dims.p))
    expect(parts).toContain(33)
    expect(Math.max(...[...parts].map(Number))).toBeLessThanOrEqual(66)
  })

  it('derives dimensions that follow from others', () => {
    for (const { dims } of casesOf({ ...entryOf('beam_select'), fixedDims: { k: 4 } })) {
      expect(dims.n).toBe((dims.w ?? 0) * (dims.p ?? 0) * 4)
      expect(dims.w).toBeLessThanOrEqual(4)
    }
    for (const { dims } of casesOf(entryOf('add_position', 'f32'))) expect(dims.p).toBeGreaterThan(dims.s ?? 0)
  })
})

describe('inputsOf', () => {
  it('draws indices in range and values without zeros', () => {
    for (const test of casesOf(entryOf('embedding_lookup', 'f16'))
      .filter(({ draw }) => draw === 'integer')
      .slice(0, 40)) {
      const { ids, table } = inputsOf(test)
      const v = test.dims.v ?? 0
      expect(Array.from(ids?.data ?? []).every((id) => Number.isInteger(id) && id >= 0 && id < v)).toBe(true)
      expect(new Set(Array.from(table?.data ?? []))).not.toContain(0)
    }
  })

  it('draws lengths from 1 to the extent', () => {
    for (const test of casesOf(entryOf('mask_scores', 'f32')).slice(0, 40)) {
      const lengths = Array.from(inputsOf(test).lengths?.data ?? [])
      expect(lengths.every((length) => length >= 1 && length <= (test.dims.t ?? 0))).toBe(true)
    }
  })

  it('draws sums of int8 matmuls as integers that quantise to most of the range', () => {
    for (const test of casesOf(entryOf('dequantize_channels', 'f16')).filter(({ dims }) => (dims.n ?? 0) > 1000)) {
      const drawn = Array.from(inputsOf(test).x?.data ?? [])
      expect(drawn.every(Number.isInteger)).toBe(true)
      expect(new Set(drawn).size).toBeGreaterThan(190)
    }
  })

  it('draws the same values for the same case', () => {
    const [test] = casesOf(entryOf('add', 'bf16'))
    if (test === undefined) throw new Error('no case')
    expect(inputsOf(test)).toEqual(inputsOf(test))
  })
})

describe('a kernel with large minimum sizes', () => {
  /** Scales of blocks: 128 x 128 elements have one. */
  const blocks = (facts: object = {}) => ({
    ...entryOf('layer_norm', 'f32'),
    dims: ['n', 'k', 'a', 'b'],
    fixedDims: {},
    buffers: [
      { name: 'x', access: 'in' as const, dtype: 'f32' as const, dims: ['n', 'k'], layout: 'row' },
      { name: 'scale', access: 'in' as const, dtype: 'f32' as const, dims: ['a', 'b'], layout: 'row' },
      { name: 'y', access: 'out' as const, dtype: 'f32' as const, dims: ['n', 'k'], layout: 'row' },
    ],
    facts: {
      ...{ inputs: {}, attrs: {}, results: {}, loops: [] },
      dims: { n: { equal: ['mul', 128, 'a'] }, k: { equal: ['mul', 128, 'b'] }, ...facts },
    } as NonNullable<ReturnType<typeof entryOf>['facts']>,
  })

  it('is tried at the least of them, and at one that differs', () => {
    const sizes = casesOf(blocks(), checkedElements.usual).map(({ dims }) => `${dims.n}x${dims.k} ${dims.a}x${dims.b}`)
    expect(new Set(sizes)).toEqual(new Set(['128x128 1x1', '256x128 2x1', '128x256 1x2']))
    expect(new Set(casesOf(blocks(), checkedElements.usual).map(({ draw }) => draw))).toEqual(new Set(['integer', 'normal']))
  })

  it('is tried at multiples from its facts, and at nothing else', () => {
    const sizes = casesOf(blocks({ n: { multipleOf: 4 }, k: {} })).map(({ dims }) => dims)
    expect(sizes.length).toBeGreaterThan(20)
    expect(sizes.filter(({ n = 1 }) => n % 4 !== 0)).toEqual([])
    expect(sizes.filter(({ k = 1 }) => k % 4 !== 0)).not.toEqual([])
  })

  it('has its usual cases if they are small enough', () => {
    expect(casesOf(blocks()).length).toBeGreaterThan(20)
  })

  it('has none if no size is possible, and states the reason', () => {
    const beyond = blocks({ n: { equal: ['mul', 4096, 'a'] }, k: { equal: ['mul', 4096, 'b'] } })
    expect(casesOf(beyond)).toEqual([])
    expect(whyNone(beyond)).toContain('of its least sizes, n=4096 k=4096 a=1 b=1, a buffer has 16777216 elements')
    expect(casesOf(blocks({ n: { equal: ['mul', 128, 'a'], upTo: 7 } }))).toEqual([])
  })

  it('is tried by each of several instances that share fewer cases than they are', () => {
    const one = { ...blocks(), fixedDims: { n: 128, k: 128, a: 1, b: 1 } }
    const swept = { ...one, facts: { ...one.facts, dims: { b: { swept: true as const } } } }
    for (const key of ['a', 'b', 'c', 'd', 'e', 'f']) expect(casesOf({ ...swept, key }).length).toBeGreaterThan(0)
  })
})
