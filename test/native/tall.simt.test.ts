/**
 * Tall tiles of matmuls on the CPU device: exact on small integers in any order of threads and copies. Faults that are planted in a copy of the headers are
 * found.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Check, checks, status, type Workshop, workshop } from './fixtures.js'

const device = fileURLToPath(new URL('../../native/device', import.meta.url))
const flags = (headers: string): string[] => [
  '-DHEDDLE_SIMT',
  '-DHEDDLE_SIMT_HOPPER',
  '-I',
  headers,
  '-O0',
  '-ffp-contract=off',
  '-Wno-unknown-pragmas',
]

let shop: Workshop
let folder: string
beforeAll(async () => {
  shop = await workshop()
  folder = mkdtempSync(join(tmpdir(), 'heddle-tall-'))
})
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await shop.remove()
})

const failed = (results: ReadonlyMap<string, Check>): string[] =>
  [...results.values()].flatMap((check) => (check.status !== status.ok || check.values[1] !== 0 ? [check.name] : []))

const cases = 5
const missing = 'term_missing_70x16x72'

test('tall tiles are exact in any order of threads', async () => {
  const program = await shop.program('tall_hopper', ['tall_hopper.cu'], flags(device))
  for (const order of ['forward', 'reverse', 'shuffle']) {
    const results = await checks(program, [], { HEDDLE_SIMT_ORDER: order, HEDDLE_SIMT_RACE: order === 'forward' ? '1' : '0' })
    expect(results.size).toBe(cases)
    expect(failed(results)).toEqual([missing])
  }
})

test.each([
  ['matmul_tall.cuh', 'stages.empty_of(stage).wait(parity);', ''],
  ['matmul_tall.cuh', '- (place.part > part ? 1 : 0)', ''],
  ['matmul_tall.cuh', 'place.row + half, place.first_rank()', 'place.row + half, 0'],
  ['matmul_tall_tile.cuh', '(split - 1) * (rows / split)', 'split * (rows / split)'],
])('a fault in %s is found: %s', async (file, right, wrong) => {
  const headers = mkdtempSync(join(folder, 'device-'))
  cpSync(device, headers, { recursive: true })
  const text = readFileSync(join(headers, file), 'utf8')
  expect(text.split(right)).toHaveLength(2)
  writeFileSync(join(headers, file), text.replace(right, wrong))
  const program = await shop.program(`faulty_${headers.slice(-6)}`, ['tall_hopper.cu'], flags(headers))
  const results = await checks(program, [], { HEDDLE_SIMT_ORDER: 'forward' }).catch(() => new Map<string, Check>())
  expect(failed(results).length > 1 || results.size < cases).toBe(true)
})
