/** Scans on the simt device: every schedule of them against the IR's own evaluation, and the order they combine in. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import * as fixtures from '../schedule/fixtures.js'
import { check, type Host, instances, launch, openHost, type Subject } from './host.js'

const integers = { ids: (i: number): number => ((i * 7) % 11) - 4 }

const subjects: readonly Subject[] = [
  { kernel: fixtures.prefixSum, class: 'exact' },
  { kernel: fixtures.scanOfScan, class: 'exact', inputs: integers },
  { kernel: fixtures.runningMost, class: 'exact' },
  {
    kernel: fixtures.scanElsewhere,
    class: 'exact',
    inputs: { ...integers, lengths: (i, { n }) => 1 + ((i * 5) % (n ?? 1)) },
  },
  { kernel: fixtures.scanPoint, class: 'exact', inputs: integers },
]

/** Lengths for tests whose cost is quadratic in the length. */
const shortLengths = [1, 2, 16, 31, 32, 33, 64, 128, 129]
/** The last ones are longer than registers hold, and more than two rounds of the widest block. */
const lengths = [0, ...shortLengths, 255, 256, 257, 1000, 1024, 1025, 3000, 5000, 9001]
const isQuadratic = ({ kernel }: Subject): boolean => kernel === fixtures.scanElsewhere || kernel === fixtures.scanPoint

let host: Host

beforeAll(async () => {
  host = await openHost(subjects)
})
afterAll(() => host?.close())

describe('scans on simt equal their IR', () => {
  it.each(instances(subjects))('$key', async ({ subject, key }) => {
    const entry = host.entry(key)
    const complaints: string[] = []
    const run = async (m: number, n: number) => complaints.push(await check(host, subject, entry, m, n))
    for (const n of isQuadratic(subject) ? shortLengths : lengths) await run(n > 2000 ? 3 : 9, n)
    await run(700, isQuadratic(subject) ? 7 : 300)
    expect(complaints.filter((text) => text !== '')).toEqual([])
  })

  it('tell a wrong result from a right one', async () => {
    const largest = {
      ...fixtures.prefixSum,
      body: fixtures.prefixSum.body.map((s) => (s.kind === 'scan' ? { ...s, monoid: 'max' as const } : s)),
    }
    expect(await check(host, { kernel: largest, class: 'exact' }, host.entry('prefix_sum__f32'), 2, 40)).toContain('y at 2 x 40')
  })
})

describe('sums of floats', () => {
  /** Values whose sum depends on the order of summation. */
  const wave = (i: number): number => Math.sin(i * 0.7) * 10 ** (i % 5)
  const ends = async (m: number, n: number, make = wave): Promise<number[]> =>
    Array.from(
      (await launch(host, fixtures.prefixSum, host.entry('prefix_sum__f32'), { m, n }, () => make)).outputs[0]?.stored ?? [],
    )

  it('do not depend on the number of rows, though the schedule does', async () => {
    for (const n of [300, 769, 1024]) {
      const few = await ends(2, n)
      expect((await ends(600, n)).slice(0, 2 * n)).toEqual(few)
      let total = 0
      const inOrder = Array.from({ length: n }, (_, i) => {
        total = Math.fround(total + Math.fround(wave(i)))
        return total
      })
      expect(few.slice(0, n), 'the order matters for these values').not.toEqual(inOrder)
    }
  })

  it('stay within the tolerance of a reduction', async () => {
    const positive: Subject = {
      kernel: fixtures.prefixSum,
      class: 'reduction',
      inputs: { x: (i) => 0.5 + Math.abs(Math.sin(i * 0.7)) },
    }
    for (const n of [1, 31, 32, 33, 1000, 5000]) expect(await check(host, positive, host.entry('prefix_sum__f32'), 3, n)).toBe('')
  })
})
