/** Rankings on the simt device: every schedule of them against the IR's own evaluation, with ties, NaN and rows that are too short. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Kernel } from '../../src/ir/kernel.js'
import { ranked } from '../schedule/ranked.js'
import { check, type Host, openKernels, type Subject } from './host.js'

const lengths = [1, 2, 3, 4, 5, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 257, 1000, 1025, 3000]
const draws: Readonly<Record<string, (i: number) => number>> = {
  'few values': (i) => [1, -2, 2, -1, 1][(i * 3 + (i >> 4)) % 5] ?? 0,
  'ascending values': (i) => i,
  'descending values': (i) => -i,
  'one value': () => 3,
  infinities: (i) => (i % 7 === 3 ? Number.NEGATIVE_INFINITY : i % 11 === 5 ? Number.POSITIVE_INFINITY : i % 13),
  'little but NaN': (i) => (i % 5 === 3 ? i % 13 : Number.NaN),
}

let host: Host

beforeAll(async () => {
  host = await openKernels([ranked])
})
afterAll(() => host?.close())

const subject = (x: (i: number) => number, kernel: Kernel, k: number): Subject => ({
  kernel,
  class: 'exact',
  extents: () => ({ k }),
  inputs: { x },
})
const differences = (name: string, kernel: Kernel, k: number, m: number, n: number): Promise<string> =>
  check(host, subject(draws[name] ?? Number, kernel, k), host.entry(`ranked__k${k}`), m, n)

describe('rankings on simt equal their IR', () => {
  it.each([1, 4, 32, 64])('of %i elements', async (k) => {
    const complaints: string[] = []
    for (const n of lengths) {
      for (const name of Object.keys(draws)) {
        const m = n > 500 ? 2 : 5
        complaints.push(await differences(name, ranked, k, m, n))
      }
    }
    complaints.push(await differences('few values', ranked, k, 600, 300))
    expect(complaints.filter((text) => text !== '')).toEqual([])
  })

  it('tell a wrong ranking from a right one', async () => {
    const wrong: Kernel = {
      ...ranked,
      body: ranked.body.map((s) =>
        s.kind === 'topK' && s.name === 'best' ? { ...s, length: { kind: 'const', type: 'i32', value: 3 } } : s,
      ),
    }
    expect(await differences('ascending values', wrong, 4, 2, 40)).toContain('values at 2 x 40')
  })
})
