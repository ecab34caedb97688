/** Rows with reductions are totals of each level and a kernel that stores, beside the one launch, where rows may be long. */
import { describe, expect, it } from 'vitest'
import type { DType } from '../../src/ir/dtype.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { printKernel } from '../../src/ir/print.js'
import { verifyKernel } from '../../src/ir/verify.js'
import { describeSchedule, variantLines } from '../../src/schedule/describe.js'
import { mapKernel, schedulePasses } from '../../src/schedule/map.js'
import { scheduledLaunch } from '../../src/schedule/mapped.js'
import { longRows } from '../../src/schedule/rows/long_rows.js'
import { verifyMapped } from '../../src/schedule/verify/mapped.js'
import { read } from '../frontend/refuse.js'

/** @param rest outputs, facts and body of an op over rows of `x` */
const op = (rest: string): Kernel => {
  const text = `import { argmax, exp, fold, log, max, op, row, rsqrt, scan, sum, tensor, topK } from 'heddle'
export const subject = op('subject', { dims: ['m', 'n'], types: { T: ['f32', 'f16'] }, inputs: { x: tensor('T', 'm n')${rest.includes('* w(') ? ", w: tensor('f32', 'n')" : ''} }, ${rest} })`
  const [kernel] = read(text).kernels
  if (kernel === undefined) throw new Error('the spec is refused')
  return kernel
}
const rowOut = "outputs: { y: tensor('f32', 'm n') }"
const scalarOut = "outputs: { y: tensor('f32', 'm') }"
const softmax = (facts = '') =>
  op(`${rowOut}, ${facts} body: ({ x }, { n }) => (m) => {
    const v = row(n, (c) => x(m, c))
    const top = max(n, v)
    const e = row(n, (c) => exp(v(c) - top))
    const t = sum(n, (c) => e(c))
    return { y: row(n, (c) => e(c) / t) } }`)
const centred = op(`${rowOut}, body: ({ x }, { n }) => (m) => {
    const mean = sum(n, (c) => x(m, c)) / n
    const size = sum(n, (c) => (x(m, c) - mean) ** 2)
    return { y: row(n, (c) => (x(m, c) - mean) / size) } }`)
const instance = (kernel: Kernel, T: DType = 'f16', dims = {}) => ({ kernel, types: { T }, dims })
const map = (kernel: Kernel, T?: DType, dims?: Record<string, number>) => mapKernel(instance(kernel, T, dims))
const kindsOf = (kernel: Kernel, T?: DType): readonly string[] => {
  const { split, program } = map(kernel, T)
  return split === undefined ? [] : [...split.before, { program }].map((each) => each.program.kind)
}

describe('levels of reductions', () => {
  it('are kernels whose results the later ones read once a row', () => {
    const long = longRows(instance(softmax()))
    const kernels = [...(long?.levels ?? []), ...(long?.last === undefined ? [] : [long.last])]
    for (const each of kernels) verifyKernel(each, 'a test')
    expect(kernels.map(({ tensors }) => tensors.map(({ name }) => name))).toEqual([
      ['x', 'top_once'],
      ['x', 'top_once', 't_once'],
      ['x', 'top_once', 't_once', 'y'],
    ])
    expect(printKernel(kernels[1] ?? expect.fail('a second level'))).toContain('let top_once_read: f32 = top_once[m1]')
    expect(kindsOf(softmax())).toEqual(['totals', 'elementwise'])
    expect(kindsOf(centred)).toEqual(['totals', 'totals', 'elementwise'])
  })

  it('have the stores that need no more, and a last kernel only for rows', () => {
    const quantised = op(`outputs: { y: tensor('i8', 'm n'), s: tensor('f32', 'm') }, body: ({ x }, { n }) => (m) => {
      const top = max(n, (c) => x(m, c)) + 1
      return { y: row(n, (c) => (x(m, c) * 127) / top), s: top / 127 } }`)
    const long = longRows(instance(quantised))
    expect(long?.levels.map(({ tensors }) => tensors.map(({ name }) => name))).toEqual([['x', 'max0_once', 's']])
    expect(long?.last?.tensors.map(({ name }) => name)).toEqual(['x', 'max0_once', 'y'])
    const best = longRows(
      instance(op("outputs: { y: tensor('i32', 'm') }, body: ({ x }, { n }) => (m) => ({ y: argmax(n, (c) => x(m, c)) })")),
    )
    expect([best?.levels.length, best?.last]).toEqual([1, undefined])
  })

  it('are one level where they follow from no other', () => {
    const both = `${scalarOut}, body: ({ x, w }, { n }) => (m) => ({ y: sum(n, (c) => x(m, c) * w(c)) + max(n, (c) => x(m, c)) })`
    expect(kindsOf(op(both))).toEqual(['totals'])
    const deep = `${scalarOut}, body: ({ x }, { n }) => (m) => {
      const top = max(n, (c) => x(m, c))
      return { y: top + log(sum(n, (c) => exp(x(m, c) - top))) } }`
    expect(kindsOf(op(deep))).toEqual(['totals'])
    const squares = `${scalarOut}, body: ({ x }, { n }) => (m) => {
      const top = max(n, (c) => x(m, c))
      return { y: top + sum(n, (c) => (x(m, c) - top) ** 2) } }`
    expect(kindsOf(op(squares))).toEqual(['totals', 'totals'])
  })
})

describe('other rows keep their one launch', () => {
  it.each([
    [
      'a scan',
      `${rowOut}, body: ({ x }, { n }) => (m) => { const s = scan(n, (c) => x(m, c)); const t = sum(n, (c) => x(m, c)); return { y: row(n, (c) => s(c) / t) } }`,
    ],
    [
      'a ranking',
      `${scalarOut}, body: ({ x }, { n }) => (m) => { const best = topK(2, n, (c) => x(m, c)); return { y: best.values(1) } }`,
    ],
    ['no reduction', `${rowOut}, body: ({ x }, { n }) => (m) => ({ y: row(n, (c) => x(m, c) * 2) })`],
    [
      'sums in elements',
      `${rowOut}, body: ({ x, w }, { n }) => (m) => { const t = sum(n, (c) => x(m, c)); return { y: row(n, (c) => t + sum(n, (k) => x(m, k) * w(c))) } }`,
    ],
    [
      'the sum of a part',
      `${rowOut}, body: ({ x }, { m: h, n }) => (m) => { const t = sum(h, (c) => x(m, c + 0)); return { y: row(n, (c) => x(m, c) - t) } }`,
    ],
  ])('%s', (_, rest) => expect(kindsOf(op(rest))).toEqual([]))

  it('rows that are known to be short', () => {
    expect(map(softmax(), 'f16', { n: 98_304 }).split).toBeUndefined()
    expect(map(softmax(), 'f16', { n: 98_305 }).split?.inRows?.kept).toBe(98_304)
    expect(map(softmax('facts: { n: { atMost: 4096 } },')).split).toBeUndefined()
    expect(map(softmax('facts: { n: { atMost: 1_000_000 } },')).split).toBeDefined()
    expect(map({ ...softmax(), typical: { n: 768 } }).split).toBeUndefined()
    expect(map({ ...softmax(), typical: { n: 128_256 } }).split).toBeDefined()
  })
})

it('the bytes of a row choose, and fewer of them of a single one', () => {
  const kept = (kernel: Kernel, T: DType) => map(kernel, T).split?.inRows?.kept
  expect((['f32', 'f16'] as const).map((T) => kept(softmax(), T))).toEqual([49_152, 98_304])
  const one = op(
    "outputs: { y: tensor('f32', 'n') }, body: ({ x }, { n }) => () => { const t = max(n, (c) => x(0, c)); return { y: row(n, (c) => x(0, c) - t) } }",
  )
  expect((['f32', 'f16'] as const).map((T) => kept(one, T))).toEqual([16_384, 32_768])
  expect(map(softmax()).split?.inRows?.groups).toBeUndefined()
})

it('the number of rows chooses too where any order gives the same bits, and nowhere else', () => {
  const alone = (value: string, type: string, T: DType = 'f16') => {
    const { kept, many } =
      map(op(`outputs: { y: tensor('${type}', 'm') }, body: ({ x }, { n }) => (m) => ({ y: ${value} })`), T).split?.inRows ?? {}
    return [kept, many]
  }
  expect(alone('argmax(n, (c) => x(m, c))', 'i32')).toEqual([65_536, 132])
  expect(alone('max(n, (c) => x(m, c) * 2) + 1', 'f32', 'f32')).toEqual([32_768, 132])
  expect(alone('sum(n, (c) => x(m, c) > 0 ? 1 : 0)', 'i32')).toEqual([65_536, 132])
  expect(alone('sum(n, (c) => x(m, c))', 'f32')).toEqual([98_304, undefined])
  expect(alone('sum(n, (c) => x(m, c)) + max(n, (c) => x(m, c))', 'f32')).toEqual([98_304, undefined])
  const shown = op("outputs: { y: tensor('i32', 'm') }, body: ({ x }, { n }) => (m) => ({ y: argmax(n, (c) => x(m, c)) })")
  expect(variantLines(map(shown))[0]?.when).toContain('rows of at most 65536 elements (n) or at least 132 rows')
  const centred = `outputs: { y: tensor('f32', 'm n') }, body: ({ x }, { n }) => (m) => { const t = max(n, (c) => x(m, c)); return { y: row(n, (c) => x(m, c) * 3 - t) } }`
  expect(map(op(centred)).split?.inRows?.many).toBeUndefined()
})

it('the schedule of a plan, and a tuned one, are those of the one launch', () => {
  const schedule = { kind: 'rows', team: { kind: 'block', lanes: 256 }, chunks: 2, vec: 8 } as const
  const planned = mapKernel(instance(softmax()), undefined, schedule)
  expect(variantLines(scheduledLaunch(planned))[0]?.name).toBe('subject__f16_planned')
  expect(planned.split?.before.length).toBe(1)
  // A schedule for every length leaves no rows to divide.
  const all = mapKernel(instance(softmax()), undefined, { ...schedule, chunks: 'reread' })
  expect(all.split).toBeUndefined()
})

it('the description has both forms', () => {
  const mapped = map(softmax())
  expect(describeSchedule(mapped)).toContain('program of totals')
  expect(variantLines(mapped)[0]?.when).toMatch(
    /^one launch, for rows of at most 98304 elements \(n\): rows of at most 16 elements/,
  )
})

it('a faulty pass is found by its verifiers', () => {
  const faulty = (change: (made: NonNullable<ReturnType<typeof longRows>>) => Partial<ReturnType<typeof longRows>>) => () =>
    mapKernel(instance(softmax()), undefined, undefined, {
      ...schedulePasses,
      longRows: (given) => {
        const made = longRows(given)
        return made && { ...made, ...change(made) }
      },
    })
  expect(faulty(({ levels }) => ({ levels: levels.slice(1) }))).toThrow('reads top_once, which no launch in front leaves')
  expect(faulty(() => ({ last: undefined }))).toThrow('no launch stores y')
  expect(faulty(({ levels }) => ({ levels: levels.map((each) => ({ ...each, body: each.body.slice(1) })) }))).toThrow(
    'after finding long rows',
  )
  const { split, ...mapped } = map(softmax())
  if (split?.inRows === undefined) throw new Error('one launch')
  const inRows = { ...split.inRows, kept: 0.5 }
  expect(() => verifyMapped({ ...mapped, split: { ...split, inRows } }, 'mapping')).toThrow('0.5 elements')
})
