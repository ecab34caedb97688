/** Loads along another axis than the stores are staged through shared memory, and no others. */
import { describe, expect, it } from 'vitest'
import type { Kernel, RowAxis } from '../../src/ir/kernel.js'
import { dimsOf } from '../../src/ir/row_axis.js'
import { describeSchedule } from '../../src/schedule/describe.js'
import { mapKernel } from '../../src/schedule/map.js'
import type { MappedKernel } from '../../src/schedule/mapped.js'
import { notesOf } from '../../src/schedule/notes/notes.js'
import { verifyMapped } from '../../src/schedule/verify/mapped.js'
import { read } from '../frontend/refuse.js'

const op = (body: string, dims: string, x: string, y: string, more = ''): Kernel => {
  const text = `import { maximum, op, sum, tensor } from 'heddle'
export const subject = op('subject', { dims: [${dims.split(' ').map((d) => `'${d}'`)}], types: { T: ['f16'] },
  inputs: { x: tensor('T', '${x}')${more} }, outputs: { y: tensor('T', '${y}') }, body: ${body} })`
  const [kernel] = read(text).kernels
  if (kernel === undefined) throw new Error('the spec is refused')
  return kernel
}
const map = (kernel: Kernel): MappedKernel => mapKernel({ kernel, types: { T: 'f16' }, dims: {} })
const stagingOf = ({ program }: MappedKernel) => (program.kind === 'elementwise' ? program.staging : undefined)

describe('staged loads', () => {
  it.each([
    ['a transpose', '({ x }) => (i, j) => ({ y: x(j, i) })', 'm n', 'n m', 'm n', 'm'],
    ['channels last', '({ x }) => (b, h, w, c) => ({ y: x(b, c, h, w) })', 'b c h w', 'b c h w', 'b h w c', 'h w'],
    ['all axes reversed', '({ x }) => (l, k, j, i) => ({ y: x(i, j, k, l) })', 'a b c d', 'a b c d', 'd c b a', 'd'],
    ['one of two loads', '({ x }) => (i, j) => ({ y: x(i, j) + x(j, i) })', 'n', 'n n', 'n n', 'n'],
    ['under a condition that keeps it inside', '({ x }) => (i, j) => ({ y: i > j ? x(j, i) : 0 })', 'm n', 'n m', 'm n', 'm'],
    ['at a place within the tensor', '({ x }) => (i, j) => ({ y: x(maximum(j - 1, 0), i) })', 'm n', 'n m', 'm n', 'm'],
  ])('%s', (_, body, dims, x, y, axis) => {
    const mapped = map(op(body, dims, x, y))
    expect(stagingOf(mapped)?.axis).toSatisfy((found: RowAxis) => dimsOf(found).join(' ') === axis)
    expect(stagingOf(mapped)?.loads.map(({ vec }) => vec)).toEqual([8])
    expect(describeSchedule(mapped)).toContain('in chunks of 8 along')
    expect(notesOf(mapped)).toEqual([])
  })
})

describe('loads that stay as they are', () => {
  it.each([
    ['contiguous along the stores', '({ x }) => (b, h, s, d) => ({ y: x(b, s, h, d) })', 'b h s d', 'b s h d', 'b h s d'],
    ['a value per row', '({ x }) => (i, j) => ({ y: x(0, i) * j })', 'm n', 'n m', 'm n'],
    [
      'at a place that only a condition keeps inside',
      '({ x }) => (i, j) => ({ y: j > 0 ? x(j - 1, i) : 1 })',
      'm n',
      'n m',
      'm n',
    ],
    ['inside of a sum', '({ x }, { n }) => (i, j) => ({ y: sum(n, (k) => x(k, i)) * j })', 'm n', 'n m', 'm n'],
  ])('%s', (_, body, dims, x, y) => {
    expect(stagingOf(map(op(body, dims, x, y)))).toBeUndefined()
  })

  it('at a place that a table gives', () => {
    const body = '({ x, at }) => (i, j) => ({ y: x(at(j), i) })'
    expect(stagingOf(map(op(body, 'm n p', 'p m', 'm n', ", at: tensor('i32', 'n')")))).toBeUndefined()
  })
})

describe('staged loads by their places', () => {
  it.each([
    ['adjacent stores of adjacent rows are a run', '({ x }) => (i, j) => ({ y: x(j, i) * 2 })', 'm n', 'n m', 'm n', true, true],
    [
      'stores of rows with others between are none',
      '({ x }) => (l, k, i) => ({ y: x(i, k, l) })',
      'm k n',
      'm k n',
      'n k m',
      false,
      true,
    ],
    [
      'nor are those whose values depend on a place',
      '({ x }) => (i, j) => ({ y: x(j, i) * j })',
      'm n',
      'n m',
      'm n',
      false,
      true,
    ],
    [
      'a place that is no constant distance further',
      '({ x }) => (i, j) => ({ y: x(maximum(j - 1, 0), i) })',
      'm n',
      'n m',
      'm n',
      true,
      false,
    ],
  ])('%s', (_, body, dims, x, y, isRun, isLinear) => {
    const staging = stagingOf(map(op(body, dims, x, y)))
    expect(staging?.isRun).toBe(isRun)
    expect(staging?.loads.map((load) => load.isLinear)).toEqual([isLinear])
  })
})

it('tiles of more loads than shared memory has room for are not made', () => {
  const given = ['a', 'b', 'c'].map((name) => `, ${name}: tensor('f32', 'n m')`).join('')
  const mapped = map(
    op('({ x, a, b, c }) => (i, j) => ({ y: x(j, i) + a(j, i) * b(j, i) - c(j, i) })', 'm n', 'n m', 'm n', given),
  )
  expect(stagingOf(mapped)?.loads.map(({ load }) => load.tensor)).toHaveLength(3)
  expect(notesOf(mapped).map(({ kind }) => kind)).toEqual(['strided'])
})

it('the verifier refuses tiles over a strange axis, and elements that nothing stages', () => {
  const mapped = map(op('({ x }) => (i, j) => ({ y: x(j, i) })', 'm n', 'n m', 'm n'))
  const { program } = mapped
  if (program.kind !== 'elementwise' || program.staging === undefined) throw new Error('nothing is staged')
  const { staging } = program
  const faulty = (changes: Partial<typeof staging>): MappedKernel => ({
    ...mapped,
    program: { ...program, staging: { ...staging, ...changes } },
  })
  expect(() => verifyMapped(faulty({ axis: { index: 'k', dim: 'm' } }), 'mapping')).toThrow('which is none of its axes')
  const other = staging.loads.map((load) => ({ ...load, name: 'other' }))
  expect(() => verifyMapped(faulty({ loads: other }), 'mapping')).toThrow('x_tile is neither loaded nor staged')
})
