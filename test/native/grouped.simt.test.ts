/**
 * Main loops of grouped matmuls on the CPU device, those for Hopper included: exact on small integers in any order of threads and copies. Faults that
 * are planted in a copy of the headers are found.
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
  folder = mkdtempSync(join(tmpdir(), 'heddle-grouped-'))
})
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await shop.remove()
})

const failed = (results: ReadonlyMap<string, Check>): string[] =>
  [...results.values()].flatMap((check) => (check.status !== status.ok || check.values[1] !== 0 ? [check.name] : []))

const missing = 'row_missing_9x32x72x2'

test('grouped matmuls are exact in any order of threads', async () => {
  const program = await shop.program('grouped_hopper', ['grouped_hopper.cu'], flags(device))
  for (const order of ['forward', 'reverse', 'shuffle']) {
    const results = await checks(program, [], { HEDDLE_SIMT_ORDER: order, HEDDLE_SIMT_RACE: order === 'forward' ? '1' : '0' })
    expect(results.size).toBe(8)
    expect(failed(results)).toEqual([missing])
  }
})

test.each([
  ['grouped_rows.cuh', 'words.set(at, place + first);', 'words.set(at, place);'],
  ['grouped_rows.cuh', 'return matrix >= 0 && matrix < matrices ? matrix : matrices;', 'return matrix;'],
  ['grouped_wgmma.cuh', 'own.matrix * work.n + column0,', 'own.matrix * work.n,'],
  ['grouped_wgmma.cuh', 'if (step >= Tile::stages) ring.empty().wait(ring.parity ^ 1);', ''],
  ['grouped_wgmma.cuh', 'const int half = side * (Tile::rows / 2);', 'const int half = side * (Tile::rows / 4);'],
  ['wgmma_single.cuh', 'previous.arrive_at(thread);', 'previous.arrive_at(0);'],
])('a fault in %s is found: %s', async (file, right, wrong) => {
  const headers = mkdtempSync(join(folder, 'device-'))
  cpSync(device, headers, { recursive: true })
  const text = readFileSync(join(headers, file), 'utf8')
  expect(text.split(right)).toHaveLength(2)
  writeFileSync(join(headers, file), text.replace(right, wrong))
  const program = await shop.program(`faulty_${headers.slice(-6)}`, ['grouped_hopper.cu'], flags(headers))
  const results = await checks(program, [], { HEDDLE_SIMT_ORDER: 'forward' }).catch(() => new Map<string, Check>())
  expect(failed(results).length > 1 || results.size < 8).toBe(true)
})
