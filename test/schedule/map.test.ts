import { describe, expect, it } from 'vitest'
import type { DType } from '../../src/ir/dtype.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { describeSchedule } from '../../src/schedule/describe.js'
import { mapKernel, schedulePasses } from '../../src/schedule/map.js'
import { chunksApart, type MappedKernel, type RowProgram, scheduledLaunch, type Variant } from '../../src/schedule/mapped.js'
import { type Pass, statementsOf } from '../../src/schedule/normalise/passes.js'
import * as fixtures from './fixtures.js'

const map = (kernel: Kernel, T: DType = 'f16', dims: Record<string, number> = {}): MappedKernel => {
  const types: Record<string, DType> = Object.hasOwn(kernel.types, 'T') ? { T } : {}
  return scheduledLaunch(mapKernel({ kernel, types, dims }))
}

function rows(mapped: MappedKernel): RowProgram {
  if (mapped.program.kind !== 'rows') throw new Error(`${mapped.key} is not a row program`)
  return mapped.program
}

const passes = (steps: RowProgram['kept']): Pass[] => steps.flatMap((step) => (step.kind === 'pass' ? [step.pass] : []))
const kept = (steps: RowProgram['kept']): string[] =>
  passes(steps).flatMap((pass) => pass.rows.filter((row) => row.keep).map((row) => row.name))

describe('program of a kernel', () => {
  it.each([
    fixtures.pointwise,
    fixtures.gatherRows,
    fixtures.splitHeads,
    fixtures.transpose,
    fixtures.concatenate,
    fixtures.quantize,
  ])('$name is elementwise', (kernel) => expect(map(kernel).program.kind).toBe('elementwise'))
  it.each([fixtures.layerNorm, fixtures.softmax, fixtures.argmaxRow, fixtures.difference, fixtures.window, fixtures.raggedSum])(
    '$name is a row program',
    (kernel) => expect(map(kernel).program.kind).toBe('rows'),
  )
})

describe('passes', () => {
  it('has one pass more than the longest chain of reductions', () => {
    expect(passes(rows(map(fixtures.layerNorm)).kept)).toHaveLength(3)
    expect(passes(rows(map(fixtures.softmax)).kept)).toHaveLength(3)
    expect(passes(rows(map(fixtures.argmaxRow)).kept)).toHaveLength(1)
  })

  it('stores exactly the rows that a later pass uses', () => {
    expect(kept(rows(map(fixtures.layerNorm)).kept)).toEqual(['v'])
    expect(kept(rows(map(fixtures.softmax)).kept)).toEqual(['v', 'e'])
    expect(kept(rows(map(fixtures.argmaxRow)).kept)).toEqual([])
  })

  it('stores nothing in the multi-pass form', () => {
    const program = rows(map(fixtures.softmax))
    expect(kept(program.reread)).toEqual([])
    expect(passes(program.reread).map((pass) => pass.rows.map((row) => row.name))).toEqual([['v'], ['v', 'e']])
    const apart = mapKernel({ kernel: fixtures.softmax, types: { T: 'f32' }, dims: {} }, undefined, undefined, {
      ...schedulePasses,
      inOnePass: () => undefined,
    })
    expect(passes(rows(scheduledLaunch(apart)).reread).map((pass) => pass.rows.map((row) => row.name))).toEqual([
      ['v'],
      ['v', 'e'],
      ['v', 'e'],
    ])
  })

  it('joins loops of one length and parts loops of two', () => {
    const [first, second, third, ...more] = passes(rows(map(fixtures.twoLengths)).kept)
    const reduced = [first, second].map((pass) => pass && statementsOf(pass, 'reduce').map((r) => r.name))
    expect(reduced).toEqual([['total'], ['least']])
    expect([third && statementsOf(third, 'loopStore').length, more.length]).toEqual([1, 0])
  })

  it('moves row-uniform values out of the loop, once', () => {
    const text = describeSchedule(map(fixtures.layerNorm))
    expect(text).toMatch(/once a row: row_rsqrt = rsqrt\(variance \+ eps\)/)
    expect(text.match(/rsqrt\(/g)).toHaveLength(1)
  })

  it('keeps a guarded load at its condition', () => {
    const [pass] = passes(map(fixtures.concatenate).program.kind === 'elementwise' ? stepsOf(fixtures.concatenate) : [])
    expect(pass?.rows).toEqual([])
  })

  it('recomputes a row element at another index', () => {
    expect(describeSchedule(map(fixtures.difference))).toContain('x[m0, c - 1] * 3.0')
  })
})

describe('histograms', () => {
  it('count in the pass of their elements', () => {
    const found = passes(rows(map(fixtures.tally)).kept).map((pass) => statementsOf(pass, 'histogram').map((h) => h.tensor))
    expect(found).toEqual([['counts'], ['below']])
    expect(rows(map(fixtures.tally)).reread).toHaveLength(2)
  })

  it('are named in the schedule', () =>
    expect(describeSchedule(map(fixtures.tally))).toContain('count below[m0, bin_2] for bin_2 = top - ids_c[c], below k'))
})

describe('scans', () => {
  it('need no separate pass', () => {
    expect(passes(rows(map(fixtures.prefixSum)).kept)).toHaveLength(1)
    expect(passes(rows(map(fixtures.scanOfScan)).kept)).toHaveLength(2)
  })

  it('are rows, computed after their input and stored for a later pass', () => {
    const program = rows(map(fixtures.scanOfScan))
    expect(passes(program.kept).map((pass) => pass.rows.map((row) => row.name))).toEqual([['ids_c', 'v', 'ends', 'sums'], []])
    expect(kept(program.kept)).toEqual(['sums'])
    expect(passes(program.reread).map((pass) => pass.rows.map((row) => row.name))).toEqual([
      ['ids_c', 'v', 'ends', 'sums'],
      ['ids_c', 'v', 'ends', 'sums'],
    ])
  })

  it('tie the elements of a row together', () => {
    for (const kernel of [fixtures.prefixSum, fixtures.scanOfScan, fixtures.runningMost, fixtures.scanElsewhere])
      expect(map(kernel).program.kind).toBe('rows')
  })

  it('are recomputed for an element at another index', () => {
    const text = describeSchedule(map(fixtures.scanElsewhere))
    expect(text).toContain('sum(c_2 < c - 1 + 1: ids[m0, c_2])')
    expect(text).toContain('some = scan sum of ids_c1[c1]')
  })

  it('keep a program elementwise that reads single elements of them, each from a row of its own', () => {
    expect(describeSchedule(map(fixtures.scanPoint))).toContain('store y[a, b] = sum(c_2 < b + 1: ids[a, c_2] * (b + 1))')
    expect(map(fixtures.scanPoint).program.kind).toBe('elementwise')
  })
})

const stepsOf = (kernel: Kernel) => {
  const { program } = map(kernel)
  return program.kind === 'rows' ? program.kept : program.kind === 'elementwise' ? program.steps : []
}

describe('vector width', () => {
  it.each<[string, Kernel, DType, number]>([
    ['16 bytes of the smallest type', fixtures.layerNorm, 'f32', 4],
    ['8 halves', fixtures.layerNorm, 'f16', 8],
    ['at most 8, for int8 too', fixtures.quantize, 'f32', 8],
    ['the stored side of a transpose counts', fixtures.transpose, 'bf16', 8],
  ])('%s', (_, kernel, T, vec) => expect(map(kernel, T).vec).toBe(vec))
})

describe('the choice among variants', () => {
  const choose = ({ variants }: RowProgram, length: number, count: number): Variant => {
    const found = variants.find(
      ({ limit }) => (limit.length === undefined || length <= limit.length) && (limit.rows === undefined || count <= limit.rows),
    )
    if (found === undefined) throw new Error(`no variant takes ${count} rows of ${length}`)
    return found
  }
  const laneChunks = ({ team, chunks }: Variant): number =>
    (team.kind === 'thread' ? 1 : team.lanes) * (chunks ?? Number.POSITIVE_INFINITY)

  it.each(['f32', 'f16'] as const)('every length and row count has a variant that fits (%s)', (T) => {
    for (const kernel of [fixtures.layerNorm, fixtures.softmax, fixtures.argmaxRow, fixtures.twoLengths]) {
      const mapped = map(kernel, T)
      for (const length of [0, 1, 16, 17, 255, 256, 257, 1023, 1024, 1025, 8192, 8193, 2 ** 31 - 1]) {
        for (const count of [1, 528, 529, 100_000]) {
          const variant = choose(rows(mapped), length, count)
          expect(laneChunks(variant) * mapped.vec, `${mapped.key} ${count} x ${length}`).toBeGreaterThanOrEqual(length)
        }
      }
    }
  })

  it('lets the row count decide only if the order of combination is the same', () => {
    const mapped = map(fixtures.softmax, 'f32')
    for (let length = 1; length < 20_000; length += 7) {
      const few = choose(rows(mapped), length, 1)
      const many = choose(rows(mapped), length, 1_000_000)
      if (few === many) continue
      // One chunk a lane, a warp with all chunks and a block that keeps the totals of two apart fill the same 32 slots in the same order.
      expect([few.chunks, few.team.kind]).toEqual([1, 'block'])
      expect(length <= 1024 ? many.team.kind : chunksApart(many.team, many.chunks)).toBe(length <= 1024 ? 'warp' : 2)
    }
  })

  it('uses fewer registers if a row needs many values', () => {
    const values = (kernel: Kernel, T: DType): number => {
      const mapped = map(kernel, T)
      return Math.max(...rows(mapped).variants.map((v) => (v.chunks ?? 0) * mapped.vec))
    }
    expect(values(fixtures.softmax, 'f32')).toBe(32)
    expect(values(fixtures.fourRows, 'f32')).toBe(16)
  })

  it('has one variant if only the row knows its length', () => {
    expect(rows(map(fixtures.raggedSum)).variants.map((v) => v.chunks)).toEqual([undefined])
  })
})

it('puts fixed dimensions into the program', () => {
  const mapped = map(fixtures.softmax, 'f16', { n: 128 })
  expect(mapped.key).toBe('softmax__f16__n128')
  expect(describeSchedule(mapped)).toContain('pass over c < 128')
})

it('describes a schedule in words', () => {
  expect(describeSchedule(map(fixtures.pointwise))).toBe(
    [
      'gelu__f16: elementwise, rows over (m0 < m), chunks of 8',
      '  pass over c < n:',
      '    a = load x[m0, c] in chunks',
      '    store y[m0, c] = 0.5 * a[c] * (1.0 + erf(a[c] * 0.7071067811865476)) in chunks',
      '  gelu__f16: elementwise: a chunk of 8 elements a thread, 256 threads a block; always',
    ].join('\n'),
  )
})
