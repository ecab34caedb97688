import { describe, expect, it } from 'vitest'
import type { Instance } from '../../src/ir/instance.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { variantLines } from '../../src/schedule/describe.js'
import { mapKernel } from '../../src/schedule/map.js'
import { scheduledLaunch } from '../../src/schedule/mapped.js'
import { candidatesFor, keepsOrder, ruleChoices } from '../../src/schedule/tuning/candidates.js'
import { choiceName, problemOf, type ScheduleChoice } from '../../src/schedule/tuning/choice.js'
import { formatTuning, mergeTuning, parseTuning, refuseUnknown, type TuningEntry } from '../../src/schedule/tuning/tuning.js'
import { refusal } from '../refusal.js'
import * as fixtures from './fixtures.js'

const instance = (kernel: Kernel): Instance => ({ kernel, types: { T: 'f16' }, dims: {} })
const map = (kernel: Kernel) => scheduledLaunch(mapKernel(instance(kernel)))

const warp = (vec: number, chunks: number | 'reread'): ScheduleChoice => ({
  kind: 'rows',
  team: { kind: 'warp', lanes: 32, rowsPerBlock: 4 },
  chunks,
  vec,
})

const entry = (
  choice: ScheduleChoice,
  more: Partial<TuningEntry> = {},
  rows: { fromRows?: number; toRows?: number } = {},
): TuningEntry => ({
  kernel: 'softmax',
  dtype: 'f16',
  length: 768,
  architecture: 'sm_90',
  device: 'NVIDIA H200',
  variants: [{ fromRows: 1, ...rows, choice, measured: [{ rows: 4096, rules: 6.1, choice: 5.2 }] }],
  ...more,
})

const tuned = (kernel: Kernel, ...entries: readonly TuningEntry[]) =>
  scheduledLaunch(mapKernel(instance(kernel), { file: 'tuning.json', entries }))

const kernels = [fixtures.softmax, fixtures.layerNorm, fixtures.argmaxRow, fixtures.fourRows, fixtures.pointwise]
const lengths = [1, 7, 16, 33, 128, 512, 768, 1024, 3072, 8193]

describe('candidates', () => {
  it.each(kernels)('of $name are legal, distinct and more than the rules', (kernel) => {
    const mapped = map(kernel)
    for (const length of lengths) {
      const found = candidatesFor(mapped, length)
      expect(found.map((choice) => problemOf(choice, mapped, length)).filter((problem) => problem !== undefined)).toEqual([])
      expect(new Set(found.map(choiceName)).size).toBe(found.length)
      expect(found.length, `rows of ${length}`).toBeGreaterThan(1)
    }
  })

  it('try chunks of all widths: whole ones and halves, and single elements', () => {
    const widths = (vec: number) => [
      ...new Set(
        candidatesFor({ ...map(fixtures.pointwise), vec }, 768).flatMap((choice) => ('vec' in choice ? [choice.vec] : [])),
      ),
    ]
    expect(widths(8)).toEqual([8, 4])
    expect(widths(1)).toEqual([1])
  })

  it('fit the row: one value more than the team holds is refused', () => {
    const mapped = map(fixtures.softmax)
    for (const length of lengths) {
      for (const choice of candidatesFor(mapped, length)) {
        if (choice.kind !== 'rows' || choice.chunks === 'reread') continue
        const lanes = choice.team.kind === 'thread' ? 1 : choice.team.lanes
        expect(problemOf(choice, mapped, lanes * choice.chunks * choice.vec + 1)).toContain('the team holds')
      }
    }
  })

  it('preserve the order of the rules if they are a rule themselves', () => {
    const mapped = map(fixtures.softmax)
    for (const length of lengths)
      for (const rule of ruleChoices(mapped, length)) expect(keepsOrder(rule, mapped, length)).toBe(true)
  })

  it('leave the order of the rules with narrower chunks or part of a warp', () => {
    const mapped = map(fixtures.softmax)
    expect(keepsOrder(warp(8, 3), mapped, 768)).toBe(true)
    expect(keepsOrder(warp(4, 6), mapped, 768)).toBe(false)
    expect(keepsOrder({ kind: 'rows', team: { kind: 'warp', lanes: 16, rowsPerBlock: 8 }, chunks: 4, vec: 8 }, mapped, 512)).toBe(
      false,
    )
    expect(keepsOrder({ kind: 'rows', team: { kind: 'block', lanes: 64 }, chunks: 2, vec: 8 }, mapped, 768)).toBe(true)
    expect(keepsOrder({ kind: 'rows', team: { kind: 'block', lanes: 32 }, chunks: 3, vec: 8 }, mapped, 768)).toBe(false)
  })
})

describe('a tuned kernel', () => {
  it('tries the measured variant first, for its length, followed by the others', () => {
    const { program, generic } = tuned(fixtures.softmax, entry(warp(8, 3), {}, { fromRows: 2000, toRows: 8191 }))
    const rules = map(fixtures.softmax).program
    if (program.kind !== 'rows' || rules.kind !== 'rows') throw new Error('softmax is a row program')
    expect(program.variants[0]).toEqual({
      name: 'tuned_sm_90_768_2000',
      team: { kind: 'warp', lanes: 32, rowsPerBlock: 4 },
      chunks: 3,
      vec: 8,
      limit: { length: undefined, rows: 8191, tuned: { architecture: 'sm_90', length: 768, fromRows: 2000 } },
      reason: 'measured on NVIDIA H200: 5.2 us instead of 6.1 at 4096 rows',
    })
    expect(program.variants.slice(1)).toEqual(rules.variants)
    expect(generic).toBe(false)
  })

  it('is described in words', () => {
    const [line] = variantLines(tuned(fixtures.softmax, entry(warp(4, 6))))
    expect(line).toEqual({
      name: 'softmax__f16_tuned_sm_90_768',
      schedule: 'a warp a row, 4 rows a block; 6 x 4 values a lane in registers',
      when: 'on sm_90 rows of 768 elements: measured on NVIDIA H200: 5.2 us instead of 6.1 at 4096 rows',
    })
    const elements = tuned(fixtures.pointwise, entry({ kind: 'elementwise', vec: 4, threads: 128 }, { kernel: 'gelu' }))
    const [first, rest] = variantLines(elements)
    expect(first?.when).toContain(': measured on NVIDIA H200: 5.2 us instead of 6.1 at 4096 rows')
    expect(rest?.when).toBe('otherwise')
  })

  it('is the kernel by the rules without an entry of its own', () => {
    const others = [entry(warp(8, 3), { kernel: 'layer_norm' }), entry(warp(8, 3), { dtype: 'bf16' })]
    expect(tuned(fixtures.softmax, ...others)).toEqual(map(fixtures.softmax))
  })
})

describe('refusals name the entry', () => {
  const other = entry(warp(8, 3), { length: 512 })
  it.each<[string, ScheduleChoice, string]>([
    ['too few values', warp(8, 2), 'the team holds 512 values, rows have 768'],
    ['too many registers', warp(8, 5), 'a lane keeps 40 values of a row, at most 32 fit its registers'],
    ['a width the kernel cannot have', warp(16, 2), 'vec: expected a power of two up to 8, got 16'],
    ['a width that is no power of two', warp(3, 8), 'vec: expected a power of two up to 8, got 3'],
    ['another kind of program', { kind: 'elementwise', vec: 8, threads: 256 }, 'the kernel has row programs only'],
    [
      'lanes that do not divide a warp',
      { kind: 'rows', team: { kind: 'warp', lanes: 24, rowsPerBlock: 4 }, chunks: 4, vec: 8 },
      'lanes of a warp: expected 2, 4, 8, 16 or 32, got 24',
    ],
    [
      'half a warp',
      { kind: 'rows', team: { kind: 'block', lanes: 48 }, chunks: 2, vec: 8 },
      'threads per block: expected a multiple of 32 up to 1024, got 48',
    ],
    ['many values of many lanes', { kind: 'rows', team: { kind: 'block', lanes: 1024 }, chunks: 2, vec: 8 }, 'over 512 threads'],
  ])('%s', (_, choice, why) => {
    const error = refusal(() => tuned(fixtures.softmax, other, entry(choice)))
    expect(error.code).toBe('tuning.choice')
    expect(error.message).toMatch(/^tuning\.json: entries\[1\] \(softmax f16, rows of 768, sm_90\): /)
    expect(error.message).toContain(why)
  })

  it('a row program for an elementwise kernel', () => {
    const error = refusal(() => tuned(fixtures.pointwise, entry(warp(8, 3), { kernel: 'gelu' })))
    expect([error.code, error.message]).toEqual(['tuning.choice', expect.stringContaining('elementwise programs only')])
  })

  it('a length only the rows know', () => {
    const wanted = entry(warp(8, 3), { kernel: fixtures.raggedSum.name })
    expect(refusal(() => tuned(fixtures.raggedSum, wanted)).message).toContain('only its rows know their length')
  })

  it('a number of rows that would decide about rounding', () => {
    const error = refusal(() => tuned(fixtures.softmax, entry(warp(4, 6), {}, { fromRows: 4096 })))
    expect([error.code, error.exitCode]).toEqual(['tuning.order', 2])
  })

  it('a number of rows that would decide about sums that are scaled as the row is read', () => {
    expect(keepsOrder(warp(8, 3), map(fixtures.softmax), 768)).toBe(true)
    expect(keepsOrder(warp(8, 'reread'), map(fixtures.softmax), 768)).toBe(false)
    expect(keepsOrder(warp(8, 'reread'), map(fixtures.layerNorm), 768)).toBe(true)
  })

  it('a kernel or storage type that is not there', () => {
    const entries = [entry(warp(8, 3)), entry(warp(8, 3), { dtype: 'f64' })]
    const error = refusal(() => refuseUnknown({ file: 't.json', entries }, [instance(fixtures.softmax)]))
    expect([error.code, error.message]).toEqual(['tuning.kernel', expect.stringMatching(/^t\.json: entries\[1\] \(softmax f64/)])
  })
})

describe('the file', () => {
  const entries = [entry(warp(8, 3), { length: 1024 }), entry(warp(8, 3)), entry(warp(8, 3), { architecture: 'sm_80' })]

  it('is sorted, and the same whatever order entries and fields come in', () => {
    const text = formatTuning(entries)
    const shuffled = entries.toReversed().map(({ kernel, ...rest }) => ({ ...rest, kernel }))
    expect(formatTuning(shuffled)).toBe(text)
    expect(parseTuning(text, 'tuning.json').entries.map(({ length, architecture }) => [length, architecture])).toEqual([
      [768, 'sm_80'],
      [768, 'sm_90'],
      [1024, 'sm_90'],
    ])
    expect(formatTuning(parseTuning(text, 'tuning.json').entries)).toBe(text)
  })

  it('keeps entries that were not measured again, and removes those that no longer beat the rules', () => {
    const fresh = entry(warp(8, 'reread'))
    const again = [entry(warp(8, 3)), entry(warp(8, 3), { length: 1024 })]
    expect(mergeTuning(entries, [fresh], again)).toEqual([entries[2], fresh])
  })

  it.each([
    [
      'no number of rows',
      formatTuning(entries).replace('"fromRows": 1', '"fromRows": 9, "toRows": 8'),
      'tuning.schema',
      'entries[0].variants[0].toRows: expected at least fromRows',
    ],
    ['no JSON', '{', 'tuning.json', 'tuning.json is not JSON'],
    ['another version', '{"version": 2, "entries": []}', 'tuning.schema', 'tuning.json: version: '],
    [
      'another architecture',
      formatTuning(entries).replace('sm_80', 'gpu'),
      'tuning.schema',
      'entries[0].architecture: expected simt or',
    ],
    [
      'an unknown field',
      formatTuning(entries).replace('"chunks": 3', '"chunk": 3'),
      'tuning.schema',
      'entries[0].variants[0].choice',
    ],
    [
      'a key twice',
      formatTuning(entries).replace('sm_80', 'sm_90'),
      'tuning.twice',
      'entries[1] (softmax f16, rows of 768, sm_90)',
    ],
  ])('is refused: %s', (_, text, code, message) => {
    const error = refusal(() => parseTuning(text, 'tuning.json'))
    expect([error.code, error.message]).toEqual([code, expect.stringContaining(message)])
  })
})
