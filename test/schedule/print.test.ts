/** Schedules as text, for people: steps after each pass, and the whole schedule with its teams. */
import { describe, expect, it } from 'vitest'
import type { DType } from '../../src/ir/dtype.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { describeSchedule } from '../../src/schedule/describe.js'
import { mapKernel } from '../../src/schedule/map.js'
import { scheduledLaunch } from '../../src/schedule/mapped.js'
import { printSteps } from '../../src/schedule/print.js'
import { choiceName } from '../../src/schedule/tuning/choice.js'
import { softmax, tally, transpose } from './fixtures.js'
import { ranked } from './ranked.js'

/** Steps of a kernel after a pass. */
function stepsOf(subject: Kernel, pass: string, dims: Readonly<Record<string, number>> = {}): string {
  let text = ''
  const types: Readonly<Record<string, DType>> = Object.hasOwn(subject.types, 'T') ? { T: 'f16' } : {}
  mapKernel({ kernel: subject, types, dims }, undefined, undefined, undefined, (name, { steps }) => {
    if (name === pass && steps !== undefined) text = printSteps(steps)
  })
  return text
}

describe('steps', () => {
  it('of a softmax', () => {
    expect(stepsOf(softmax, 'ordering passes, rows kept')).toMatchInlineSnapshot(`
      "for c < n
        loaded v = x[m0, c] (run Infinity, keep)
        reduce top = v[c] (monoid max)
      for c < n
        computed e = exp~(v[c] - top) (keep)
        reduce total = e[c] (monoid sum)
      for c < n
        loopStore y = e[c] /~ total (indices [m0, c], run Infinity)"
    `)
    expect(stepsOf(softmax, 'simplifying, rows read again')).toMatchInlineSnapshot(`
      "let top_once_read = top_once[m0]
      let total_shifted_once_read = total_shifted_once[m0]
      let total = top_once_read === -Infinity && n > 0 ? NaN : total_shifted_once_read
      for c < n
        loaded v = x[m0, c] (run Infinity)
        computed e = exp~(v[c] - top_once_read)
        loopStore y = e[c] /~ total (indices [m0, c], run Infinity)"
    `)
  })

  it('of a histogram and of rankings', () => {
    expect(stepsOf(tally, 'ordering passes, rows kept')).toMatchInlineSnapshot(`
      "for c < n
        loaded ids_c = ids[m0, c] (run Infinity, keep)
        reduce top = ids_c[c] (monoid max)
        histogram counts = ids_c[c] (indices [m0, bin], bin bin, bins k)
      for c < n
        histogram below = top - ids_c[c] (indices [m0, bin_2], bin bin_2, bins k)"
    `)
    expect(stepsOf(ranked, 'ordering passes, rows kept', { k: 4 })).toMatchInlineSnapshot(`
      "for c < n
        loaded x_c = x[r, c] (run Infinity)
        topK best = x_c[c] (indices at, count 4)
      for d < 4
        sharedRow total = sum(e < minimum(d + 1, n): toFloat(e)) (length 4)
      for d < 4
        topK again = -toFloat(at[d]) (indices againAt, count 4)
        loopStore values = best[d] (indices [r, d], run Infinity)
        loopStore indices = at[d] (indices [r, d], run Infinity)
        loopStore sums = total[4 - 1 - d] * 2.0 (indices [r, d], run Infinity)
      for d < 4
        loopStore places = at[againAt[d]] (indices [r, d], run Infinity)"
    `)
  })
})

it('a schedule prints its passes and their teams', () => {
  const described = (subject: Kernel, dims = {}) =>
    describeSchedule(
      scheduledLaunch(mapKernel({ kernel: subject, types: Object.hasOwn(subject.types, 'T') ? { T: 'f16' } : {}, dims })),
    )
  expect(described(softmax)).toMatchInlineSnapshot(`
    "softmax__f16: row program, rows over (m0 < m), chunks of 8
      pass over c < n:
        v = load x[m0, c] in chunks, kept in registers
        top = max of v[c]
      pass over c < n:
        e = exp~(v[c] - top), kept in registers
        total = sum of e[c]
      pass over c < n:
        store y[m0, c] = e[c] /~ total in chunks
      softmax__f16_thread: a thread a row, 128 rows a block; 2 x 8 values a lane in registers; rows of at most 16 elements: a row this short is one or two loads: no lane waits for another
      softmax__f16_lanes: 8 lanes a row, 16 rows a block; 2 x 8 values a lane in registers; rows of at most 128 elements: a row this short leaves lanes of a whole warp idle: a warp takes several
      softmax__f16_warp: a warp a row, 4 rows a block; 1 x 8 values a lane in registers; rows of at most 256 elements: few registers a lane, so many rows run at once, and no barrier
      softmax__f16_block: a block of 128 threads a row; 1 x 8 values a lane in registers; rows of at most 1024 elements and at most 528 rows: too few rows to fill the device with warps: one chunk a lane keeps the row short in time
      softmax__f16_warp_wide: a warp a row, 4 rows a block; 4 x 8 values a lane in registers; rows of at most 1024 elements: the row fits the registers of one warp, and no barrier
      softmax__f16_block_mid: a block of 256 threads a row; 1 x 8 values a lane in registers; rows of at most 2048 elements and at most 528 rows: one chunk a lane: its loads are in flight together, and vectors such as gamma are prefetched
      softmax__f16_block_mid_wide: a block of 128 threads a row; 2 x 8 values a lane in registers; rows of at most 2048 elements: two chunks a lane: a multiprocessor has more loads of many rows in flight
      softmax__f16_block_tall: a block of 512 threads a row; 1 x 8 values a lane in registers; rows of at most 4096 elements and at most 528 rows: one chunk a lane: its loads are in flight together, and vectors such as gamma are prefetched
      softmax__f16_block_tall_wide: a block of 256 threads a row; 2 x 8 values a lane in registers; rows of at most 4096 elements: two chunks a lane: a multiprocessor has more loads of many rows in flight
      softmax__f16_block_wide: a block of 512 threads a row; 2 x 8 values a lane in registers; rows of at most 8192 elements: the row fits the registers of one block
      softmax__f16_block_long4: a block of 512 threads a row; 4 x 8 values a lane in registers; rows of at most 16384 elements and whole chunks of 8: the row fits the registers of one block, of which a multiprocessor has several
      softmax__f16_block_reread: a block of 512 threads a row; values computed again in every pass, sums in that of the maximum that shifts them; otherwise: longer than registers hold: every pass reads the row again"
  `)
  expect(described(tally)).toMatchInlineSnapshot(`
    "tally: row program, rows over (m0 < m), chunks of 4
      pass over c < n:
        ids_c = load ids[m0, c] in chunks, kept in registers
        common = ids_c[c]
        top = max of common[c]
        count counts[m0, bin] for bin = common[c], below k
      pass over c < n:
        count below[m0, bin_2] for bin_2 = top - ids_c[c], below k
      tally_thread: a thread a row, 128 rows a block; 4 x 4 values a lane in registers; rows of at most 16 elements: a row this short is one or two loads: no lane waits for another
      tally_lanes: 8 lanes a row, 16 rows a block; 4 x 4 values a lane in registers; rows of at most 128 elements: a row this short leaves lanes of a whole warp idle: a warp takes several
      tally_warp: a warp a row, 4 rows a block; 2 x 4 values a lane in registers; rows of at most 256 elements: few registers a lane, so many rows run at once, and no barrier
      tally_block: a block of 256 threads a row; 1 x 4 values a lane in registers; rows of at most 1024 elements and at most 528 rows: too few rows to fill the device with warps: one chunk a lane keeps the row short in time
      tally_warp_wide: a warp a row, 4 rows a block; 8 x 4 values a lane in registers; rows of at most 1024 elements: the row fits the registers of one warp, and no barrier
      tally_block_tall: a block of 512 threads a row; 1 x 4 values a lane in registers; rows of at most 2048 elements and at most 528 rows: one chunk a lane: its loads are in flight together, and vectors such as gamma are prefetched
      tally_block_tall_wide: a block of 256 threads a row; 2 x 4 values a lane in registers; rows of at most 2048 elements: two chunks a lane: a multiprocessor has more loads of many rows in flight
      tally_block_wide: a block of 512 threads a row; 4 x 4 values a lane in registers; rows of at most 8192 elements: the row fits the registers of one block
      tally_block_reread: a block of 512 threads a row; values computed again in every pass; otherwise: longer than registers hold: every pass reads the row again"
  `)
  expect(described(ranked, { k: 4 })).toMatchInlineSnapshot(`
    "ranked__k4: row program, rows over (r < m), chunks of 4
      pass over c < n:
        x_c = load x[r, c] in chunks
        best, at = top 4 of x_c[c], in shared memory
      pass over d < 4:
        total = sum(e < minimum(d + 1, n): toFloat(e)), in shared memory
      once a row: row_sub = 4 - 1
      pass over d < 4:
        again, againAt = top 4 of -toFloat(at[d]), in shared memory
        store values[r, d] = best[d] in chunks
        store indices[r, d] = at[d] in chunks
        store sums[r, d] = total[row_sub - d] * 2.0 in chunks
      pass over d < 4:
        store places[r, d] = at[againAt[d]] in chunks
      ranked__k4_warp: a warp a row, 4 rows a block; 2 x 4 values a lane in registers; rows of at most 256 elements: few registers a lane, so many rows run at once, and no barrier
      ranked__k4_block: a block of 512 threads a row; 1 x 4 values a lane in registers; rows of at most 2048 elements and at most 528 rows: too few rows to fill the device with warps: one chunk a lane keeps the row short in time
      ranked__k4_block_reread: a block of 512 threads a row; values computed again in every pass; otherwise: longer than registers hold: every pass reads the row again"
  `)
  expect(described(transpose)).toMatchInlineSnapshot(`
    "transpose__f16: elementwise, rows over (c < n), chunks of 8
      once a tile: x_tile = load x[m0, c] in chunks of 8 along c
      pass over m0 < m:
        store y[c, m0] = x_tile[m0] in chunks
      transpose__f16: elementwise by tiles: a block of 128 threads loads x along c into shared memory, chunks of 8 elements per thread, or fewer where rows of the result are not aligned; always; tiles of 64 x 64, or of 4, 16 or 32 along a shorter side, and tiles of up to 16 columns are stored as one run"
  `)
})

it('choices have descriptive names', () => {
  const rows = { kind: 'rows', vec: 8 } as const
  expect([
    choiceName({ ...rows, team: { kind: 'thread', rowsPerBlock: 128 }, chunks: 2 }),
    choiceName({ ...rows, team: { kind: 'warp', lanes: 16, rowsPerBlock: 4 }, chunks: 3 }),
    choiceName({ ...rows, team: { kind: 'block', lanes: 512 }, chunks: 'reread' }),
    choiceName({ kind: 'elementwise', threads: 256, vec: 4 }),
  ]).toEqual(['thread128_c2_v8', 'warp16x4_c3_v8', 'block512_reread_v8', 'threads256_v4'])
})
