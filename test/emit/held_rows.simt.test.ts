/** Columns that several walks read, on the simt device against their bodies: threads load the rows once, and read them again where a launch has no room. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { costDevice } from '../../src/cost/device.js'
import { partCosts } from '../../src/cost/kernel.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { heldLoads } from '../../src/schedule/divided/held_loads.js'
import { mapKernel } from '../../src/schedule/map.js'
import { read } from '../frontend/refuse.js'
import { check, type Host, launch, openKernels } from './host.js'
import { countSectors } from './sectors.js'

const text = `import { exp, max, op, rsqrt, sum, tensor } from 'heddle'
const types = { T: ['f16', 'f32'] } as const
const dims = ['b', 'm', 'n'] as const
export const softmax = op('softmax', { dims, types, inputs: { x: tensor('T', 'b m n') }, outputs: { y: tensor('T', 'b m n') },
  body: ({ x }, { m }) => (b, k, c) => {
    const top = max(m, (r) => x(b, r, c))
    const all = sum(m, (r) => exp(x(b, r, c) - top))
    return { y: exp(x(b, k, c) - top) / all }
  } })
export const two = op('two', { dims, types, inputs: { x: tensor('T', 'b m n'), z: tensor('f32', 'b m n') }, outputs: { y: tensor('T', 'b m n') },
  body: ({ x, z }, { m }) => (b, k, c) => {
    const mean = sum(m, (r) => x(b, r, c) + z(b, r, c)) / m
    const spread = sum(m, (r) => (x(b, r, c) - mean) ** 2) / m
    return { y: (x(b, k, c) + z(b, k, c) - mean) * rsqrt(spread + 1) }
  } })
export const shifted = op('shifted', { dims: ['m', 'n'], inputs: { x: tensor('f32', 'm n'), at: tensor('i32', 'm') }, outputs: { y: tensor('f32', 'm n') },
  facts: { at: { index: 'm' } },
  body: ({ x, at }, { m }) => (k, c) => {
    const top = max(m, (r) => x(r, c))
    return { y: x(at(k), c) - top }
  } })
`
let kernels: readonly Kernel[]
let host: Host
const sectors = countSectors()
beforeAll(async () => {
  kernels = read(text).kernels
  host = await openKernels(kernels)
})
afterAll(async () => {
  await host?.close()
  sectors.close()
})

const named = (name: string): Kernel => {
  const kernel = kernels.find((each) => each.name === name)
  if (kernel === undefined) throw new Error(`no kernel ${name}`)
  return kernel
}

// One row, few rows of a thread, rows of 32 threads with and without a tail, and more than a block has memory for.
const sizes = [
  [1, 9],
  [21, 65],
  [32, 64],
  [33, 1030],
  [150, 33],
  [2100, 17],
] as const
it.each(['softmax__f16', 'softmax__f32', 'two__f16', 'two__f32', 'shifted'])('%s', async (key) => {
  const kernel = named(key.replace(/__f\d+$/, ''))
  const complaints: string[] = []
  const inputs: Readonly<Record<string, (i: number, dims: Readonly<Record<string, number>>) => number>> =
    key === 'shifted' ? { at: (i, { m = 1 }) => (i * 7) % m } : {}
  for (const [m, n] of sizes) {
    const subject = { kernel, class: 'reduction' as const, extents: () => ({ b: 2 }), inputs }
    complaints.push(await check(host, subject, host.entry(key), m, n))
  }
  expect(complaints.filter((complaint) => complaint !== '')).toEqual([])
})

const readsOf = async (key: string, m: number): Promise<number> => {
  sectors.taken()
  await launch(host, named(key.replace(/__f\d+$/, '')), host.entry(key), { b: 2, m, n: 256 }, () => (i) => i % 5)
  const [only, ...others] = sectors.taken()
  expect(others).toEqual([])
  return (only?.accessed[0] ?? 0) / ((2 * m * 256 * (key.endsWith('f16') ? 2 : 4)) / 32)
}

it('reads what a block has room for once, and the rest in every walk', async () => {
  for (const m of [21, 300]) expect(await readsOf('softmax__f16', m), `${m} rows`).toBe(1)
  expect(await readsOf('softmax__f16', 2000)).toBe(3)
  expect(await readsOf('softmax__f32', 200)).toBe(1)
})

it('prices rows that are held once', () => {
  const { split } = mapKernel({ kernel: named('softmax'), types: { T: 'f16' }, dims: {} })
  const columns = split?.inRows?.mapped
  if (columns === undefined) throw new Error('no launch of columns')
  const instructionsOf = (m: number): number => {
    const [cost, ...others] = partCosts(columns, { dims: { b: 2, m, n: 65_536 }, attrs: {} }, costDevice('h200'))
    expect(others).toEqual([])
    return (cost?.instructions ?? 0) / m
  }
  expect(instructionsOf(300)).toBeLessThan(instructionsOf(3000))
})

const heldIn = (name: string): readonly string[] => {
  const mapped = mapKernel({ kernel: named(name), types: { T: 'f16' }, dims: {} })
  const { program } = mapped.split?.inRows?.mapped ?? mapped
  return program.kind === 'columns' ? heldLoads(program).map(({ first }) => first.load.tensor) : []
}

it('holds what several walks load of the same rows', () => {
  expect(heldIn('softmax')).toEqual(['x'])
  expect(heldIn('two')).toEqual(['x', 'z'])
  expect(heldIn('shifted')).toEqual([])
})
