/** Scans of long rows are totals of pieces and scans of pieces, beside the one launch, where rows may be long. */
import { describe, expect, it } from 'vitest'
import { evaluateKernel } from '../../src/ir/evaluate.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { verifyKernel } from '../../src/ir/verify.js'
import { mapKernel } from '../../src/schedule/map.js'
import { longScans } from '../../src/schedule/rows/long_scans.js'
import { read } from '../frontend/refuse.js'
import * as fixtures from './fixtures.js'

const op = (body: string, rest = ''): Kernel => {
  const text = `import { abs, monoid, op, row, scan, sum, tensor } from 'heddle'
const linear = monoid({ identity: { a: 1, b: 0 }, combine: (l, r) => ({ a: l.a * r.a, b: l.b * r.a + r.b }) })
export const used = { abs, linear, sum }
export const subject = op('subject', { dims: ['m', 'n'], types: { T: ['f32', 'f16'] }, inputs: { x: tensor('T', 'm n') }, outputs: { y: tensor('f32', 'm n') }, ${rest}
  body: ({ x }, { n }) => (m) => { ${body} } })`
  const [kernel] = read(text).kernels
  return kernel ?? expect.fail('the spec is refused')
}
const running = op(
  'const s = scan(n, (c) => abs(x(m, c)) + c); const h = x(m, 0); return { y: row(n, (c) => s(c) * h - x(m, c)) }',
)
const instance = (kernel: Kernel, dims: Record<string, number> = {}) => ({ kernel, types: { T: 'f16' as const }, dims })
const kindsOf = (kernel: Kernel, dims?: Record<string, number>): readonly string[] => {
  const { split, program } = mapKernel(instance(kernel, dims))
  return split === undefined ? [] : [...split.before, { program }].map((each) => each.program.kind)
}

describe('pieces', () => {
  const [m, n] = [2, 9001]
  const x = { shape: [m, n], data: Float64Array.from({ length: m * n }, (_, i) => ((i * 37) % 23) - 9) }
  const pieces = Math.ceil(n / 4096)

  /** The outputs of the kernel in pieces. @param change what a fault makes of the second kernel */
  function inPieces(change: (kernel: Kernel) => Kernel = (kernel) => kernel): readonly number[] {
    const long = longScans(instance(running)) ?? expect.fail('one form')
    const scans = change(long.scans)
    for (const each of [long.totals, scans]) verifyKernel(each, 'a test')
    const dims = { m, n, pieces }
    const totals = evaluateKernel(long.totals, { x }, dims, {})
    return Array.from(evaluateKernel(scans, { x, ...totals }, dims, {}).y?.data ?? [], Number)
  }
  const wanted = Array.from(evaluateKernel(running, { x }, { m, n }, {}).y?.data ?? [], Number)

  it('have the elements of the row', () => {
    expect(wanted.length).toBe(m * n)
    expect(inPieces()).toEqual(wanted)
  })

  it('that begin with their own total, too, do not', () => {
    const isBefore = (s: Kernel['body'][number]): boolean => s.kind === 'reduce' && s.name.endsWith('before')
    const all = (kernel: Kernel): Kernel => ({
      ...kernel,
      body: kernel.body.map((s) =>
        isBefore(s) && s.kind === 'reduce' ? { ...s, length: { kind: 'dim', type: 'i32', name: 'pieces' } } : s,
      ),
    })
    expect(inPieces(all)).not.toEqual(wanted)
  })

  it('that are stored from the beginning of the row do not', () => {
    const first = (kernel: Kernel): Kernel => ({
      ...kernel,
      body: kernel.body.map((s) => {
        if (s.kind !== 'storeRow') return s
        const { from: _, ...rest } = s
        return rest
      }),
    })
    expect(inPieces(first)).not.toEqual(wanted)
  })
})

it('several scans have totals each', () => {
  const both = op(
    'const s = scan(n, (c) => x(m, c)); const t = scan(n, (c) => x(m, c) * 2); return { y: row(n, (c) => s(c) * t(c)) }',
  )
  expect(kindsOf(both)).toEqual(['rows', 'rows'])
  expect(longScans(instance(both))?.totals.tensors.map(({ name }) => name)).toEqual(['x', 's_once', 't_once'])
})

describe('rows are divided', () => {
  it('where they may be long', () => {
    expect(kindsOf(running)).toEqual(['rows', 'rows'])
    expect(kindsOf(running, { n: 98_304 })).toEqual([])
    expect(kindsOf(running, { n: 98_305 })).toEqual(['rows', 'rows'])
    expect(kindsOf({ ...running, typical: { n: 4096 } })).toEqual([])
    expect(mapKernel(instance(running)).split?.inRows?.kept).toBe(98_304)
  })

  it('with a variant for each number of pieces, and none for shorter rows', () => {
    const { split, program } = mapKernel(instance(running))
    const names = [...(split?.before ?? []), { program }].map((each) =>
      each.program.kind === 'rows' ? each.program.variants.map(({ name }) => name) : [],
    )
    expect(names).toEqual([
      ['block_tall', 'block_tall_wide'],
      ['block_tall', 'block_wide', 'block_reread'],
    ])
  })

  it('by their number, too, where any order gives the same bits', () => {
    const { body } = fixtures.prefixSum
    const most: Kernel = {
      ...fixtures.prefixSum,
      body: body.map((s) => (s.kind === 'scan' ? { ...s, monoid: 'max' as const } : s)),
    }
    const many = (kernel: Kernel) => mapKernel(instance(kernel)).split?.inRows?.many
    expect([many(fixtures.prefixSum), many(most)]).toEqual([undefined, 132])
  })
})

describe('other scans keep their one launch', () => {
  it.each([
    ['scans of scans', 'const s = scan(n, (c) => x(m, c)); const t = scan(n, (c) => s(c)); return { y: row(n, (c) => t(c)) }'],
    [
      'scans with a total',
      'const s = scan(n, (c) => x(m, c)); const t = sum(n, (c) => x(m, c)); return { y: row(n, (c) => s(c) / t) }',
    ],
    [
      'scans of which every element reads the last',
      'const s = scan(n, (c) => x(m, c)); const t = s(n - 1); return { y: row(n, (c) => s(c) / t) }',
    ],
    [
      'scans of which every element reads the last in place',
      'const s = scan(n, (c) => x(m, c)); return { y: row(n, (c) => s(c) / s(n - 1)) }',
    ],
    [
      'rows of which every element reads the first',
      'const v = row(n, (c) => abs(x(m, c))); const t = v(0); const s = scan(n, (c) => v(c) * t); return { y: row(n, (c) => s(c)) }',
    ],
    [
      'scans by a monoid whose elements have an order',
      'const s = linear.scan(n, (c) => ({ a: x(m, c), b: 1 })); return { y: row(n, (c) => s.b(c)) }',
    ],
  ])('%s', (_, body) => expect(kindsOf(op(body))).toEqual([]))
})
