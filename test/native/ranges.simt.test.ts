/** Interval arithmetic of device code against every number of small ranges: no result lies outside of the interval of its rule. */
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Check, checks, type Workshop, workshop } from './fixtures.js'

const device = fileURLToPath(new URL('../../native/device', import.meta.url))

let shop: Workshop
let results: ReadonlyMap<string, Check>

beforeAll(async () => {
  shop = await workshop()
  const program = await shop.program('ranges', ['ranges.cu'], ['-DHEDDLE_SIMT', '-I', device, '-ffp-contract=off'])
  results = await checks(program, [], {})
})

afterAll(() => shop.remove())

const rules =
  'add sub mul idiv mod neg abs minimum maximum lt le gt ge eq ne both any no select choice nested ' +
  'large_add large_sub large_mul large_idiv truth floats'

test.each(rules.split(' '))('%s', (name) => {
  const [compared, outside] = results.get(name)?.values ?? []
  expect(compared).toBeGreaterThan(0)
  expect(outside).toBe(0)
})

test.each('sub mul idiv mod lt eq'.split(' '))('a wrong rule for %s is found', (name) => {
  expect(results.get(`wrong_${name}`)?.values[1]).toBeGreaterThan(0)
})

test.each([
  // Comparisons are undecided only where necessary: for ranges without a common number, or with the same single one, each answer is certain.
  ['lt', (low: number, high: number, from: number, to: number) => !(high < from) && !(low >= to)],
  ['eq', (low: number, high: number, from: number, to: number) => !(high < from || to < low) && !(low === high && from === to)],
])('%s is as sharp as can be', (name, isOpen) => {
  const numbers = Array.from({ length: 13 }, (_, at) => at - 6)
  const ranges = numbers.flatMap((low) => numbers.filter((high) => high >= low).map((high) => [low, high] as const))
  const open = ranges.flatMap(([low, high]) => ranges.filter(([from, to]) => isOpen(low, high, from, to))).length
  expect(results.get(name)?.values[2]).toBe(open)
})
