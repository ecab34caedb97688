/** Matmuls whose rows are reduced, with every main loop that supports them, on the CPU device: equal to their IR. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { MatmulKernel } from '../../src/ir/product.js'
import { planned, productOf, readOps } from './host.js'
import { differences, type Kernels, launch, openProducts } from './host_simt.js'
import { reducedRows } from './reduced_graphs.js'

const ops = readOps()
const kernels = reducedRows.map((each): MatmulKernel => productOf(planned(each, ops)))
/** Storage types of each case: every loop runs, and each case compiles once. */
const typeOf = (name: string): 'f16' | 'f32' => (['nearest', 'masked', 'best_of_batches'].includes(name) ? 'f32' : 'f16')

/** One row, few and many; whole groups and parts of one; a k of no whole chunk, and one whose rows are copied to be aligned. */
const sizes = [
  { m: 1, n: 77, k: 16 },
  { m: 1, n: 1, k: 24 },
  { m: 3, n: 40, k: 64 },
  { m: 5, n: 13, k: 7 },
  { m: 17, n: 72, k: 128 },
  { m: 9, n: 5, k: 16 },
  { m: 70, n: 136, k: 40 },
  { m: 65, n: 67, k: 33 },
  { m: 66, n: 35, k: 133 },
]

let host: Kernels
beforeAll(async () => {
  host = await openProducts(kernels, ({ name }) => [typeOf(name)])
})
afterAll(() => host?.close())

describe('reduced rows on simt equal their IR', () => {
  it.each(kernels.map((kernel) => ({ name: kernel.name, kernel })))('$name', async ({ name, kernel }) => {
    const found: string[] = []
    for (const { m, n, k } of sizes) {
      const dims = { b: 2, [kernel.m]: m, [kernel.n]: n, [kernel.k]: k, v: Math.min(4, n) }
      found.push(...(await differences(host, kernel, `${name}__${typeOf(name)}`, dims)))
    }
    expect(found).toEqual([])
  })
})

it('the number of rows changes no bit of a result, from nine on', async () => {
  const kernel = kernels.find(({ name }) => name === 'cross_entropy')
  if (kernel === undefined) throw new Error('there is no such case')
  const sizeOf = (m: number) => ({ [kernel.m]: m, [kernel.n]: 328, [kernel.k]: 72, v: 4 })
  const few = await launch(host, kernel, 'cross_entropy__f16', sizeOf(9))
  const many = await launch(host, kernel, 'cross_entropy__f16', sizeOf(500))
  for (const [i, { name, stored }] of few.outputs.entries())
    expect(Array.from(many.outputs[i]?.stored ?? []).slice(0, stored.length), name).toEqual(Array.from(stored))
})
