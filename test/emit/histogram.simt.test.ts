/** Histograms on the simt device: every schedule of them against the IR's own evaluation. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import * as fixtures from '../schedule/fixtures.js'
import { check, type Host, openHost, type Subject } from './host.js'

const bins = 7
/** Integers on both sides of the bins. */
const ids = (i: number): number => ((i * 5 + (i >> 3)) % (bins + 4)) - 2

const subjects: readonly Subject[] = [
  { kernel: fixtures.tally, class: 'exact', extents: () => ({ k: bins }), inputs: { ids } },
  { kernel: fixtures.tallyScan, class: 'exact', extents: () => ({ k: bins }), inputs: { ids } },
]
const lengths = [0, 1, 2, 16, 17, 31, 32, 33, 128, 129, 257, 1000, 1024, 1025, 5000, 9001]

let host: Host

beforeAll(async () => {
  host = await openHost(subjects)
})
afterAll(() => host?.close())

describe('histograms on simt equal their IR', () => {
  it.each(subjects)('$kernel.name', async (subject) => {
    const complaints: string[] = []
    for (const n of lengths) complaints.push(await check(host, subject, host.entry(subject.kernel.name), n > 2000 ? 3 : 9, n))
    complaints.push(await check(host, subject, host.entry(subject.kernel.name), 700, 300))
    expect(complaints.filter((text) => text !== '')).toEqual([])
  })

  it('may have more bins than a row has elements', async () => {
    const [subject] = subjects
    if (subject === undefined) throw new Error('no subject')
    expect(await check(host, { ...subject, extents: () => ({ k: 2048 }) }, host.entry('tally'), 5, 40)).toBe('')
  })

  it('tell a wrong count from a right one', async () => {
    const shifted = { ids: (i: number): number => ids(i) }
    const wrong: Subject = {
      kernel: {
        ...fixtures.tally,
        body: fixtures.tally.body.map((s) => (s.kind === 'histogram' && s.tensor === 'counts' ? { ...s, value: countsOnly } : s)),
      },
      class: 'exact',
      extents: () => ({ k: bins }),
      inputs: shifted,
    }
    expect(await check(host, wrong, host.entry('tally'), 2, 40)).toContain('counts at 2 x 40')
  })
})

const countsOnly = { kind: 'const', type: 'i32', value: 1 } as const
