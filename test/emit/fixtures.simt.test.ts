/** Fixture kernels, shapes no shipped op has, run on the simt device against the IR's own evaluation. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import * as fixtures from '../schedule/fixtures.js'
import { check, type Host, instances, launch, openHost, type Subject } from './host.js'

const subjects: readonly Subject[] = [
  { kernel: fixtures.transpose, class: 'exact' },
  { kernel: fixtures.gatherRows, class: 'exact', extents: () => ({ v: 11 }), inputs: { ids: (i) => (i * 7) % 11 } },
  { kernel: fixtures.concatenate, class: 'exact', extents: (n) => ({ a: n - 1, b: 1 }) },
  { kernel: fixtures.raggedSum, class: 'exact', inputs: { lengths: (i, { n }) => (i * 5) % ((n ?? 0) + 1) } },
  { kernel: fixtures.argmaxRow, class: 'exact' },
  { kernel: fixtures.quantize, class: 'exact' },
  { kernel: fixtures.difference, class: 'exact' },
  { kernel: fixtures.twoLengths, class: 'exact', extents: (n) => ({ k: (n % 37) + 1 }) },
  { kernel: fixtures.window, class: 'exact', extents: () => ({ k: 3 }) },
  { kernel: fixtures.fourRows, class: 'reduction' },
  { kernel: fixtures.rowSum, class: 'exact' },
]

const lengths = [1, 2, 8, 15, 16, 17, 31, 64, 255, 256, 257, 1000, 1024, 1025, 3000, 9001]

let host: Host

beforeAll(async () => {
  host = await openHost(subjects)
})
afterAll(() => host?.close())

describe('fixture kernels on simt equal their IR', () => {
  it.each(instances(subjects))('$key', async ({ subject, key }) => {
    const entry = host.entry(key)
    const complaints: string[] = []
    for (const n of lengths) complaints.push(await check(host, subject, entry, n > 2000 ? 3 : 9, n))
    complaints.push(await check(host, subject, entry, 700, 300))
    expect(complaints.filter((text) => text !== '')).toEqual([])
  })

  it('tell a wrong result from a right one', async () => {
    expect(
      await check(
        host,
        {
          kernel: {
            ...fixtures.transpose,
            body: fixtures.transpose.body.map((s) =>
              s.kind === 'store' ? { ...s, value: { kind: 'const', type: 'f32', value: 3 } } : s,
            ),
          },
          class: 'exact',
        },
        host.entry('transpose__f32'),
        2,
        3,
      ),
    ).toContain('y at 2 x 3')
  })
})

describe('the number of rows', () => {
  /** Values whose sum depends on the order of summation. */
  const wave = (i: number): number => Math.sin(i * 0.7) * 10 ** (i % 5)

  it.each(['f32', 'f16'] as const)('changes no bit of a row, though it changes the schedule (%s)', async (T) => {
    const entry = host.entry(`row_sum__${T}`)
    const sums = async (m: number, n: number) =>
      (await launch(host, fixtures.rowSum, entry, { m, n }, () => wave)).outputs[0]?.stored
    for (const n of [300, 769, 1024]) {
      const few = Array.from((await sums(2, n)) ?? [])
      expect(Array.from((await sums(600, n)) ?? []).slice(0, 2)).toEqual(few)
      const inOrder = Array.from({ length: n }, (_, i) => Math.fround(wave(i))).reduce((a, b) => Math.fround(a + b), 0)
      expect(few[0], 'the order matters for these values').not.toBe(inOrder)
    }
  })
})

describe('launchers refuse arguments that do not fit', () => {
  const attempt = async (dims: number[], bytes: readonly [number, number]): Promise<void> => {
    const { device, library } = host
    const slices = bytes.map((count) => ({ buffer: device.allocate(Math.max(count, 1)), offset: 0, bytes: count }))
    const program = device.program([
      { kind: 'kernel', label: 'transpose', library, key: 'transpose__f32', buffers: slices, dims, attrs: [] },
    ])
    await program.run([], [])
  }
  it.each<[string, number[], readonly [number, number]]>([
    ['transpose__f32: y needs 24 bytes, its buffer has 20', [2, 3], [24, 20]],
    ['transpose__f32: expected dimension m in [0, 2147483647], got 2147483648', [2 ** 31, 1], [24, 24]],
    ['transpose__f32: the size of x in bytes exceeds 64 bits', [2 ** 31 - 1, 2 ** 31 - 1], [24, 24]],
  ])('%s', async (message, dims, bytes) => {
    await expect(attempt(dims, bytes)).rejects.toThrow(message)
  })

  it('accept an empty problem without memory', async () => {
    await expect(attempt([0, 5], [0, 0])).resolves.toBeUndefined()
  })
})
