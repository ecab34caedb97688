/** Loads that move chunks: those guarded by a row-uniform condition, and no others. */
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { generateInstances } from '../../src/emit/generate.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import { call, f32, i32, index } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { rowMajor } from '../../src/ir/layout.js'
import { describeSchedule } from '../../src/schedule/describe.js'
import { mapKernel } from '../../src/schedule/map.js'

const load = (tensor: string, ...indices: Expr[]): Expr => ({
  kind: 'load',
  type: tensor === 'flags' ? 'i32' : 'f32',
  tensor,
  indices,
})
const [r, c] = [index('r'), index('c')]
const flag = call('gt', load('flags', r), i32(0))

/** y[r, c] = value, where flags has one element per row, and x as many rows as flags selects. */
const kernel = (value: Expr): Kernel => ({
  name: 'guarded',
  source: { file: 'test.ts', line: 1, column: 1 },
  dims: ['m', 'n', 'k'],
  types: {},
  attrs: [],
  tensors: [
    { name: 'flags', access: 'in', dtype: 'i32', dims: ['m'], layout: rowMajor(['m']) },
    { name: 'x', access: 'in', dtype: 'f32', dims: ['k', 'n'], layout: rowMajor(['k', 'n']) },
    { name: 'y', access: 'out', dtype: 'f32', dims: ['m', 'n'], layout: rowMajor(['m', 'n']) },
  ],
  rows: [{ index: 'r', dim: 'm' }],
  body: [{ kind: 'storeRow', tensor: 'y', rows: [r], length: { kind: 'dim', type: 'i32', name: 'n' }, index: 'c', value }],
})

const x = load('x', load('flags', r), c)
const loadsOf = (value: Expr): string[] => {
  const words = describeSchedule(mapKernel({ kernel: kernel(value), types: {}, dims: {} }))
  return words.split('\n').filter((line) => line.includes(' = load ') && line.includes(' in chunks'))
}

describe('a load of consecutive elements', () => {
  it('moves chunks without a guard', () => {
    expect(loadsOf(x)).toEqual([expect.stringMatching(/load x\[.*, c\d*\] in chunks$/)])
  })

  it('moves chunks under a row-uniform condition, in either branch, and under several', () => {
    expect(loadsOf(call('select', flag, x, f32(0)))).toEqual([expect.stringMatching(/ in chunks where flags\[r\] > 0$/)])
    expect(loadsOf(call('select', flag, f32(0), x))).toEqual([expect.stringMatching(/ in chunks where !\(?flags\[r\] > 0\)?$/)])
    const small = call('lt', load('flags', r), i32(9))
    const [both] = loadsOf(call('select', flag, call('select', small, x, f32(1)), f32(0)))
    expect(both).toMatch(/ in chunks where .*flags\[r\] > 0.*&&.*flags\[r\] < 9/)
  })

  it('reads single elements under a condition of the element, or on the right of && and ||', () => {
    expect(loadsOf(call('select', call('lt', c, load('flags', r)), x, f32(0)))).toEqual([])
    const some = call('and', flag, call('gt', x, f32(0)))
    expect(loadsOf(call('select', some, f32(1), f32(0)))).toEqual([])
  })

  it('moves chunks in pieces that end at a dimension, of places that change there too', () => {
    const half = call('lt', c, { kind: 'dim', type: 'i32', name: 'k' })
    const other = call('select', half, call('add', c, i32(8)), call('sub', c, i32(8)))
    const found = loadsOf(call('select', half, x, load('x', load('flags', r), other)))
    expect(found).toEqual([
      expect.stringMatching(/load x\[.*, c\] in chunks where chunk < k$/),
      expect.stringMatching(/load x\[.*c - 8\] in chunks where !\(?chunk < k\)?$/),
    ])
    // The end of a data-dependent piece is unknown, and indices two elements apart are no chunk.
    expect(loadsOf(call('select', half, load('x', load('flags', r), call('mul', c, i32(2))), f32(0)))).toEqual([])
  })

  it('computes no index if its guard is false', () => {
    const files = generateInstances([{ kernel: kernel(call('select', flag, x, f32(0))), types: {}, dims: {} }])
    const text = files.get('cuda/guarded.cu') ?? ''
    expect(text).toMatch(
      /start\w* = static_cast<int64_t>\(\(heddle::read\(flags, \w+\) > 0\) \? heddle::read\(flags, \w+\) : 0\) \* n/,
    )
    expect(text).toMatch(
      / = heddle::read\(flags, \w+\) > 0 \? heddle::load_chunk<.*> : heddle::Chunk<float, VEC>\{\};|> 0 \? heddle::load_chunk/,
    )
  })
})

it('tokens move in chunks between padded and packed rows', () => {
  const root = fileURLToPath(new URL('../..', import.meta.url))
  const { kernels } = readSpecsOrThrow({ root, specs: ['specs'] })
  for (const name of ['std.pack_rows', 'std.unpack_rows']) {
    const found = kernels.find((candidate) => candidate.name === name)
    if (found === undefined) throw new Error(`there is no ${name}`)
    const words = describeSchedule(mapKernel({ kernel: found, types: { T: 'f16' }, dims: {} }))
    expect(words).toMatch(/load x\[.*\] in chunks where /)
  }
})
