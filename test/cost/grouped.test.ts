/** Prices of grouped matmuls: the launches that they make, chosen matrices once, tiles padded, and less than the rows that they replace. */
import { expect, it } from 'vitest'
import { costDevice } from '../../src/cost/device.js'
import { partCosts } from '../../src/cost/kernel.js'
import { call, index, local } from '../../src/ir/build.js'
import { mapKernel } from '../../src/schedule/map.js'
import { axis, kernel, load, loadInt, tensor } from '../schedule/fixtures.js'

const device = costDevice('h200')
const [t, c, i] = [index('r'), index('c'), index('i')]
const grouped = kernel(
  'grouped',
  't n k e',
  [axis('r', 't'), axis('c', 'n')],
  [tensor('x', 'in', 't k'), tensor('w', 'in', 'e n k'), tensor('p', 'in', 't', 'i32'), tensor('y', 'out', 't n')],
  [
    {
      kind: 'reduce',
      name: 's',
      type: 'f32',
      monoid: 'sum',
      length: { kind: 'dim', type: 'i32', name: 'k' },
      index: 'i',
      value: call('mul', load('x', t, i), load('w', loadInt('p', t), c, i)),
    },
    { kind: 'store', tensor: 'y', indices: [t, c], value: local('s') },
  ],
)
const mapped = mapKernel({ kernel: grouped, types: { T: 'bf16' }, dims: {} })
const priced = (rows: number, of = mapped) => partCosts(of, { dims: { t: rows, n: 1024, k: 2048, e: 16 }, attrs: {} }, device)
const seconds = (rows: number, of = mapped): number => priced(rows, of).reduce((sum, each) => sum + each.seconds, 0)
const matrix = 2 * 1024 * 2048

it('few rows are one launch that reads each chosen matrix once, others are grouped first', () => {
  expect(priced(2).map(({ program, bytesRead }) => [program, bytesRead])).toEqual([['matmul', 2 * matrix + 2 * (2 * 2048 + 4)]])
  expect(priced(64).map(({ blocks }) => blocks)).toEqual([1, 64, 16 * 6])
  expect(priced(64)[2]?.bytesRead).toBe(16 * matrix + 64 * (2 * 2048 + 4))
})

it('costs less than a row per element, from one row on', () => {
  const { grouped: _, ...rows } = mapped
  for (const count of [2, 64, 4096]) expect(seconds(count)).toBeLessThan(seconds(count, rows))
})
