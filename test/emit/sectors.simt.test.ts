/** Sectors that the CPU device counts: of coalesced, strided, repeated and divided accesses, whose numbers follow from the ops. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Kernel } from '../../src/ir/kernel.js'
import { read } from '../frontend/refuse.js'
import { type Host, launch, openKernels } from './host.js'
import { countSectors, type Sectors } from './sectors.js'

const text = `import { op, sum, tensor } from 'heddle'
const types = { T: ['f32', 'f16'] } as const
export const copied = op('copied', { dims: ['n'], types, inputs: { x: tensor('T', 'n') }, outputs: { y: tensor('T', 'n') },
  body: ({ x }) => (i) => ({ y: x(i) }) })
export const spread = op('spread', { dims: ['m', 'n'], inputs: { x: tensor('f32', 'm'), at: tensor('i32', 'n') }, outputs: { y: tensor('f32', 'n') },
  body: ({ x, at }) => (i) => ({ y: x(at(i)) }), facts: { at: { index: 'm' } } })
export const rows = op('rows', { dims: ['m', 'n'], inputs: { x: tensor('f32', 'm n') }, outputs: { y: tensor('f32', 'm') }, facts: { n: { atMost: 3000 } },
  body: ({ x }, { n }) => (i) => ({ y: sum(n, (j) => x(i, j)) }) })
export const columns = op('columns', { dims: ['m', 'n'], types, inputs: { x: tensor('T', 'm n') }, outputs: { y: tensor('f32', 'n') },
  body: ({ x }, { m }) => (j) => ({ y: sum(m, (i) => x(i, j)) }) })
`
let host: Host
let kernels: readonly Kernel[]
const sectors = countSectors()
beforeAll(async () => {
  kernels = read(text).kernels
  host = await openKernels(kernels)
})
afterAll(async () => {
  await host?.close()
  sectors.close()
})

async function count(
  key: string,
  dims: Readonly<Record<string, number>>,
  at = (i: number): number => i,
): Promise<Sectors | undefined> {
  const kernel = kernels.find(({ name }) => key.split('__')[0] === name)
  if (kernel === undefined) throw new Error(`no kernel ${key}`)
  await launch(host, kernel, host.entry(key), dims, (tensor) => (tensor === 'at' ? at : (i) => i % 5))
  const [only, ...others] = sectors.taken()
  expect(others).toEqual([])
  return only
}

describe('sectors of a launch', () => {
  it('counts bytes once where accesses are coalesced', async () => {
    const bytes = (sectors: number) => ({
      accessed: [sectors, sectors],
      blocks: [sectors, sectors],
      distinct: [sectors, sectors],
    })
    expect(await count('copied__f32', { n: 4096 })).toEqual({ kernel: 'copied__f32', ...bytes(4096 / 8) })
    expect(await count('copied__f16', { n: 4096 })).toEqual({ kernel: 'copied__f16', ...bytes(4096 / 16) })
  })
  it('counts a tail that is read element by element again for each access', async () => {
    // 1,003 elements: 250 chunks of 4, and 3 elements, whose sector the chunk before touches too.
    expect(await count('copied__f32', { n: 1003 })).toMatchObject({ accessed: [128, 128], distinct: [126, 126] })
  })
  // 1,024 threads read an index each, 128 sectors; a warp of 32 threads reads 4 of them in one access of 16 bytes a lane.
  it.each([
    ['neighbours', (i: number) => i, { accessed: [128 + 4 * 128, 128], distinct: [256, 128] }],
    ['neighbours in reverse', (i: number) => 1023 - i, { accessed: [128 + 4 * 128, 128], distinct: [256, 128] }],
    ['one element of each sector', (i: number) => i * 8, { accessed: [128 + 1024, 128], distinct: [128 + 1024, 128] }],
    ['one element for all', () => 0, { accessed: [128 + 32, 128], distinct: [129, 128] }],
  ] as const)('counts a gather of %s', async (_, at, expected) => {
    expect(await count('spread', { m: 8192, n: 1024 }, at)).toMatchObject(expected)
  })
  // A warp reads 8 lanes of 4 rows at once. Chunks of 16 bytes would be 16 sectors in each of 8 loads of one element per lane.
  it('counts columns of rows that are not aligned about four times, not eight', async () => {
    const [aligned, odd] = [await count('columns__f16', { m: 40, n: 1024 }), await count('columns__f16', { m: 40, n: 1023 })]
    expect(aligned).toMatchObject({ accessed: [2560, 1024], distinct: [2560, 128] })
    expect(odd?.distinct[0]).toBeLessThan(2570)
    expect(odd?.accessed[0]).toBeLessThan(4 * 2570)
  })
  it('counts rows by warps and blocks, and results that blocks store into shared sectors', async () => {
    expect(await count('rows', { m: 64, n: 256 })).toMatchObject({
      accessed: [2048, 64],
      blocks: [2048, 16],
      distinct: [2048, 8],
    })
    expect(await count('rows', { m: 64, n: 3000 })).toMatchObject({
      accessed: [24000, 64],
      blocks: [24000, 64],
      distinct: [24000, 8],
    })
  })
})
