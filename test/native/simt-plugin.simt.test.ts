/**
 * The simt plugin through the C interface: memory with guard bands, copies, workers, events, the matmul and its refusals; and the half and bfloat16
 * conversions that kernels and the matmul share.
 */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Check, checks, execute, status, type Workshop, workshop } from './fixtures.js'

let shop: Workshop
let plugin: string

beforeAll(async () => {
  shop = await workshop()
  plugin = await shop.plugin()
})

afterAll(() => shop.remove())

const ok = (...values: number[]) => ({ status: status.ok, message: '', values })
const refused = (code: number, message: RegExp) => ({ status: code, message: expect.stringMatching(message) })

describe('device', () => {
  let program: string
  let results: ReadonlyMap<string, Check>
  beforeAll(async () => {
    program = await shop.program('plugin', ['plugin.cpp'])
    results = await checks(program, [plugin])
  })

  test.each([
    ['alignment', ok(0)],
    ['poison', ok(1)],
    ['wait_clean', ok()],
    ['wait_after', refused(status.fault, /^something wrote at byte 1003 of a device buffer of 1000 bytes$/)],
    ['wait_before', refused(status.fault, /^something wrote 5 bytes before a device buffer of 1000 bytes$/)],
    ['wait_restored', ok()],
    ['release_after', refused(status.fault, /^something wrote at byte 1255 of a device buffer of 1000 bytes$/)],
    ['release_twice', refused(status.invalid, /not a live device buffer$/)],
    ['release_null', ok()],
    ['too_much', refused(status.memory, /^out of memory on the simt device: 1125899906842624 bytes asked for, \d+ available$/)],
    ['overflowing', refused(status.memory, /: 18446744073709551615 bytes asked for, \d+ available$/)],
    ['empty', ok()],
    ['large_copies', ok(1, 1)],
    ['large_launch', ok(1, 1)],
    ['copy_in', ok()],
    ['copy_overlapping', ok()],
    ['copy_out', ok(1)],
    ['fill', ok(7, 7)],
    ['copy_outside', refused(status.invalid, /of 16 bytes at offset 56 ends outside a device buffer of 64 bytes$/)],
    ['copy_foreign', refused(status.invalid, /is not in a live device buffer$/)],
    ['copy_null', refused(status.invalid, /null host address$/)],
    ['fill_outside', refused(status.invalid, /is not in a live device buffer$/)],
    ['copy_nothing', ok()],
    ['ordinal', refused(status.unavailable, /^there is no simt device 1/)],
    ['graph_begin', refused(status.unavailable, /does not capture graphs/)],
    ['elapsed_early', refused(status.invalid, /was not recorded$/)],
    ['elapsed', ok(1)],
    ['workers', ok(1, 1)],
  ])('%s', (name, expected) => expect(results.get(name)).toMatchObject(expected))

  test('HEDDLE_SIMT_MEMORY limits allocations', async () => {
    const limited = await checks(program, [plugin], { HEDDLE_SIMT_MEMORY: '1000' })
    expect(limited.get('over_limit')).toMatchObject(refused(status.memory, /: 500 bytes asked for, 400 available$/))
    expect(limited.get('limit')).toMatchObject(ok(1000, 400))
    expect(limited.get('under_limit')).toMatchObject(ok())
  })

  test.each([
    ['HEDDLE_SIMT_MEMORY', '12GB'],
    ['HEDDLE_SIMT_THREADS', '0'],
    ['HEDDLE_SIMT_THREADS', '-1'],
  ])('%s=%s is refused', async (name, value) => {
    const opened = (await checks(program, [plugin], { [name]: value })).get('open')
    expect(opened).toMatchObject(refused(status.invalid, new RegExp(`^${name} is '${value}': a whole number from 1 to `)))
  })
})

describe('matmul', () => {
  let program: string
  let results: ReadonlyMap<string, Check>
  beforeAll(async () => {
    program = await shop.program('matmul', ['matmul.cpp'])
    results = await checks(program, [plugin])
  })

  test.each([
    ['f32', 5883],
    ['f16', 5883],
    ['f16_f32', 5883],
    ['bf16', 5883],
    ['i8', 5883],
    ['one', 1],
    ['wide', 1400],
    ['tall', 2700],
    ['column_a', 3922],
    ['column_b', 3922],
    ['column_out', 3922],
    ['empty_sum', 30],
    ['no_rows', 0],
    ['no_batch', 0],
  ])('%s is exact on small integers', (name, compared) => expect(results.get(name)).toMatchObject(ok(compared, 0)))

  test('the bits of a matmul depend neither on the batch nor on the number of workers', async () => {
    const bits = results.get('bits')?.values
    expect(bits).toHaveLength(1)
    expect(results.get('bits_split')?.values).toEqual(bits)
    for (const threads of ['1', '5']) {
      expect((await checks(program, [plugin], { HEDDLE_SIMT_THREADS: threads })).get('bits')?.values).toEqual(bits)
    }
  })

  test.each([
    ['short_a', /^matmul: a has 119 bytes; extents \(2, 3, 5\) with strides \(15, 5, 1\) of f32 need 120$/],
    ['short_out', /^matmul: out has 96 bytes; .* need 104$/],
    ['beyond_buffer', /^b of 164 bytes at offset 0 ends outside a device buffer of 160 bytes$/],
    ['huge', /^matmul: out has 96 bytes; extents \(2, 9223372036854775807, 4\)/],
    ['negative_extent', /^matmul: negative extent in batch 2, m 3, n 4, k -1$/],
    ['negative_stride', /^matmul: a has stride -1 over an extent of 2$/],
    ['no_unit_stride', /^matmul: one of a's inner strides must be 1 and they are 5 and 2$/],
    ['mixed_types', /^matmul: f32 x f16 -> f32 is not supported/],
    ['not_a_type', /^matmul: 11 is not a dtype$/],
    ['in_place', /^matmul: out overlaps a$/],
    ['written_twice', /^matmul: out has batch stride 0/],
    ['short_bias', /^matmul: bias has 12 bytes; .* of f32 need 16$/],
    ['short_residual', /^matmul: residual has 4 bytes; .* of f32 need 96$/],
    ['bias_of_its_own', /^matmul: out overlaps bias$/],
    ['residual_of_its_own', /^matmul: out overlaps residual$/],
    ['integer_epilogue', /^matmul: sums of int8 take no bias, residual or relu$/],
    ['misaligned', /is not aligned to its 4-byte elements$/],
    ['foreign', /is not in a live device buffer$/],
  ])('refuses %s', (name, message) => expect(results.get(name)).toMatchObject(refused(status.invalid, message)))
})

describe('half and bfloat16', () => {
  const hardware = /\bf16c\b/.test(readFileSync('/proc/cpuinfo', 'utf8')) ? [['with F16C', ['-mf16c']] as const] : []
  test.each([['in software', []] as const, ...hardware])(
    'conversions %s agree with the definition on every pattern',
    async (_, flags) => {
      const program = await shop.program('half', ['half.cpp'], flags)
      const counts: Record<string, Record<string, number>> = JSON.parse(await execute(program, []))
      for (const format of ['f16', 'bf16']) {
        expect(counts[format]).toMatchObject({ decode: 0, roundTrip: 0, encode: 0, nan: 0 })
        expect(counts[format]?.flipped).toBeGreaterThan(0)
      }
    },
  )
})
