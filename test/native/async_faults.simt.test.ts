/**
 * Hopper's instructions on the CPU device: a main loop without a fault is exact in every order of threads and copies, and each of sixteen planted faults
 * ends it with an error that names the kernel and the source line.
 */
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { asyncFaults } from './async_faults.js'
import { type Check, checks, status, type Workshop, workshop } from './fixtures.js'

const device = fileURLToPath(new URL('../../native/device', import.meta.url))
const source = fileURLToPath(new URL('fixtures/async_faults.cu', import.meta.url))

let shop: Workshop
let program: string
let lines: readonly string[]

beforeAll(async () => {
  shop = await workshop()
  program = await shop.program(
    'async_faults',
    ['async_faults.cu'],
    ['-DHEDDLE_SIMT', '-DHEDDLE_SIMT_HOPPER', '-I', device, '-O1'],
  )
  lines = (await readFile(source, 'utf8')).split('\n')
})

afterAll(() => shop.remove())

const run = async (fault: number, order: string): Promise<Check | undefined> => {
  const results = await checks(program, [String(fault)], { HEDDLE_SIMT_ORDER: order })
  return results.get(`fault_${fault}`)
}

test('there are sixteen faults, in the order of the kernel', () => {
  const text = lines.join('\n')
  const names = /enum Fault : int \{\s*none = -1,([^}]*)\}/.exec(text)?.[1] ?? ''
  expect(asyncFaults).toHaveLength(16)
  expect(asyncFaults.map(({ id }) => id)).toEqual(names.split(',').flatMap((name) => (name.trim() === '' ? [] : [name.trim()])))
})

test.each(['forward', 'reverse', 'shuffle'])('without a fault all sums are right, in %s order', async (order) => {
  expect(await run(-1, order)).toMatchObject({ status: status.ok, message: '', values: [0] })
})

describe('found by kernel and line', () => {
  test.each(asyncFaults.map((fault, number) => ({ ...fault, number })))('$id: $wrong', async ({ number, message, line }) => {
    const check = await run(number, 'forward')
    expect(check?.status).toBe(status.fault)
    expect(check?.message).toMatch(/^kernel main_loop: /)
    const place = new RegExp(`${message.source}async_faults\\.cu:(\\d+)`).exec(check?.message ?? '')
    expect(place, check?.message).not.toBeNull()
    expect(lines[Number(place?.[1]) - 1]).toContain(line)
  })
})
