/** Inputs of the cost model for a row kernel: passes and cached rows of every construct, as scheduled. */
import { expect, it } from 'vitest'
import { walkOf } from '../../src/fuse/search/registers.js'
import { call, dim, index, local } from '../../src/ir/build.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { mapKernel } from '../../src/schedule/map.js'
import { axis, everything, kernel, load, tensor } from '../schedule/fixtures.js'
import { ranked } from '../schedule/ranked.js'

const sizes = { dims: { m: 4, n: 64, k: 4, a: 32, b: 32, v: 8, row: 4, int: 8 }, attrs: {} }

/** Passes of the schedule. */
function scheduled(kernel: Kernel, types: Record<string, 'f16'>): number {
  const { program } = mapKernel({ kernel, types, dims: { k: 4 } })
  if (program.kind !== 'rows') return 1
  return program.kept.filter(({ kind }) => kind === 'pass').length
}

const typesOf = (kernel: Kernel): Record<string, 'f16'> => (Object.hasOwn(kernel.types, 'T') ? { T: 'f16' } : {})

it.each(everything)('counts no more passes of $name over a tensor than it has', (kernel) => {
  const { passes } = walkOf(kernel, typesOf(kernel), sizes)
  for (const count of passes.values()) expect(count).toBeLessThanOrEqual(scheduled(kernel, typesOf(kernel)))
})

it('counts the pass of a histogram, of a ranking and of a scan', () => {
  const of = (name: string, kernel = everything.find((each) => each.name === name)) =>
    kernel === undefined ? undefined : walkOf(kernel, typesOf(kernel), sizes)
  expect(of('tally')?.passes.size).toBeGreaterThan(0)
  expect(of('', ranked)?.passes.get('x')).toBeGreaterThan(0)
  expect(of('scan_of_scan')?.passes).toEqual(new Map([['ids', 2]]))
  expect(of('scan_of_scan')?.keptBytes).toBeGreaterThan(0)
})

it('counts one pass if nothing waits for a reduction, including scalars of the row', () => {
  const [m, c] = [index('m'), index('c')]
  const length = dim('n')
  const passes = (factor: 'w' | 'total') =>
    walkOf(
      kernel(
        'scaled',
        'm n',
        [axis('m', 'm')],
        [tensor('x', 'in', 'm n'), tensor('w', 'in', 'm'), tensor('y', 'out', 'm n'), tensor('z', 'out', 'm')],
        [
          { kind: 'reduce', name: 'total', type: 'f32', monoid: 'sum', length, index: 'c1', value: load('x', m, index('c1')) },
          { kind: 'let', name: 'by', type: 'f32', value: factor === 'w' ? load('w', m) : local('total') },
          { kind: 'storeRow', tensor: 'y', rows: [m], length, index: 'c', value: call('mul', load('x', m, c), local('by')) },
          { kind: 'store', tensor: 'z', indices: [m], value: local('total') },
        ],
      ),
      { T: 'f16' },
      sizes,
    ).passes.get('x')
  expect([passes('w'), passes('total')]).toEqual([1, 2])
})
