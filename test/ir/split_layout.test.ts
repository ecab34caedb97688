/** Layouts over finer shapes: their names, and equal offsets for an index and the combined one, in IR and at run time. */
import { describe, expect, it } from 'vitest'
import { layouts } from '../../specs/index.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import { emptyEnv, evaluateExpr, forEachPoint } from '../../src/ir/evaluate.js'
import type { Layout } from '../../src/ir/layout.js'
import { proveLayout } from '../../src/ir/layout_proof.js'
import { parseLayoutName, splitLayout, splitLayoutName } from '../../src/ir/split_layout.js'
import { findLayout, layoutOffset, layoutSize } from '../../src/runtime/layouts.js'

const lowered = new Map(
  readSpecsOrThrow({ root: process.cwd(), specs: ['specs/layouts'] }).layouts.map((each) => [each.name, each]),
)
const layoutOf = (name: string): Layout => {
  const found = lowered.get(name)
  if (found === undefined) throw new Error(`no layout ${name}`)
  return found
}

const axes = (rank: number): string[] => Array.from({ length: rank }, (_, i) => `axis${i}`)
const product = (extents: readonly number[]): number => extents.reduce((a, b) => a * b, 1)

/** Row-major combination of each run of a list, by the runs' extents. */
function combine(values: readonly number[], extents: readonly number[], runs: readonly number[]): number[] {
  let at = 0
  return runs.map((run) => {
    const first = at
    at += run
    return values.slice(first, at).reduce((flat, value, i) => flat * (extents[first + i] ?? 1) + value, 0)
  })
}

const extentsOf = (extents: readonly number[], runs: readonly number[]): number[] => {
  let at = 0
  return runs.map((run) => {
    at += run
    return product(extents.slice(at - run, at))
  })
}

/** Offset and size by the IR of a layout at concrete indices and extents. */
function evaluated(
  layout: Layout,
  point: readonly number[],
  extents: readonly number[],
): readonly [offset: number, size: number] {
  const env = emptyEnv(Object.fromEntries(layout.axes.map((axis, i) => [axis, extents[i] ?? 1])))
  for (const [i, axis] of layout.axes.entries()) env.values.set(axis, point[i] ?? 0)
  return [Number(evaluateExpr(layout.offset, env)), Number(evaluateExpr(layout.size, env))]
}

describe('names', () => {
  it.each([
    ['col32', [2, 2], 'col32:2+2'],
    ['rows16', [3, 1], 'rows16:3+1'],
    ['col32', [1, 1], 'col32'],
    ['row', [2, 2], 'row'],
  ] as const)('%s over runs %j is %s', (name, runs, text) => {
    expect(splitLayoutName(name, runs)).toBe(text)
    expect(parseLayoutName(text)).toEqual({ name, runs: text.includes(':') ? runs : undefined })
  })
})

const cases = ['column', 'rows16', 'col32', 'col4_4r2_8c', 'col32_2r_4r4'].flatMap((name) =>
  [
    { runs: [2, 2], extents: [2, 3, 5, 7] },
    { runs: [1, 2], extents: [9, 3, 24] },
    { runs: [3, 1], extents: [2, 3, 2, 33] },
    { runs: [2, 1], extents: [1, 1, 1] },
  ].map((shape) => ({ name, ...shape })),
)

describe.each(cases)('$name over runs $runs of $extents', ({ name, runs, extents }) => {
  const whole = layoutOf(name)
  const split = splitLayout(whole, runs, axes(extents.length))
  const found = findLayout(layouts, splitLayoutName(name, runs), extents.length)

  it('stores an index like the combined one in the layout, with the same size', () => {
    expect(split.name).toBe(splitLayoutName(name, runs))
    forEachPoint(extents, (point) => {
      const expected = evaluated(whole, combine(point, extents, runs), extentsOf(extents, runs))
      expect(evaluated(split, point, extents)).toEqual(expected)
      expect([layoutOffset(found, point, extents), layoutSize(found, extents)]).toEqual(expected)
    })
  })

  it('is proved like any layout', () => expect(() => proveLayout(split)).not.toThrow())
})

describe('twins', () => {
  it('another split of the same shape stores elsewhere', () => {
    const [rows, columns] = [
      [2, 2],
      [3, 1],
    ].map((runs) => splitLayout(layoutOf('col32'), runs, axes(4)))
    const extents = [2, 3, 5, 7]
    const differs: boolean[] = []
    forEachPoint(extents, (point) => {
      if (rows !== undefined && columns !== undefined)
        differs.push(evaluated(rows, point, extents)[0] !== evaluated(columns, point, extents)[0])
    })
    expect(differs.some(Boolean)).toBe(true)
  })

  it.each([
    ['col32:2+2', 3],
    ['col32:1+1+1', 3],
    ['heads_col32:1+1', 2],
  ])('refuses %s for a tensor of rank %i', (name, rank) =>
    expect(() => findLayout(layouts, name, rank)).toThrow(expect.objectContaining({ code: 'layout.rank' })),
  )
  it('refuses an unknown layout by name', () => expect(() => findLayout(layouts, 'col33:2+2', 4)).toThrow('unknown layout col33'))
})
