/** Suites with given times: ratios, the best of each shape, geometric means, peers, and the table in every format. */
import { expect, it } from 'vitest'
import { geometricMean, meansOf, rated } from '../../../src/bench/suite/result.js'
import { timeSuite } from '../../../src/bench/suite/run.js'
import { suiteCsv, suiteMarkdown, suiteText } from '../../../src/bench/suite/table.js'
import { given, host, suite } from './given.js'

/** Fused is faster at 64 rows, by half, and slower at one, twice. */
const stage = given((m) => (m === 1 ? 2 : 0.5))
const run = () => timeSuite(suite, 'bench.ts', stage, host)

it('rates every cell against the chosen plan, and marks the best of each shape', async () => {
  const cells = rated(await run())
  expect(cells.map(({ dtype, dims, plan, ratio, best }) => [dtype, dims.m, plan, ratio, best])).toEqual([
    ['f32', 1, 'unfused', 1, true],
    ['f32', 1, 'fused', 2, false],
    ['f32', 64, 'unfused', 1, false],
    ['f32', 64, 'fused', 0.5, true],
    ['f16', 1, 'unfused', 1, true],
    ['f16', 1, 'fused', 2, false],
    ['f16', 64, 'unfused', 1, false],
    ['f16', 64, 'fused', 0.5, true],
  ])
  expect(cells[0]?.dims).toEqual({ m: 1, n: 2 })
})

it('has the geometric mean of the ratios by type and over all: twice and half are once', async () => {
  expect(geometricMean([2, 0.5])).toBeCloseTo(1, 12)
  expect(geometricMean([])).toBeUndefined()
  const means = meansOf(await run())
  expect(means.map(({ plan, dtype, best, timed }) => [plan, dtype, best, timed])).toEqual([
    ['unfused', 'f32', 1, 2],
    ['unfused', 'f16', 1, 2],
    ['unfused', undefined, 2, 4],
    ['fused', 'f32', 1, 2],
    ['fused', 'f16', 1, 2],
    ['fused', undefined, 2, 4],
  ])
  for (const { ratio } of means) expect(ratio).toBeCloseTo(1, 12)
})

it('prints one table over all, with one unit in each column and the clock', async () => {
  const text = suiteText(await run())
  expect(text).toMatch(/dtype +│ shape +│ plan +│ median us +│ low us +│ high us +│ \/ unfused +│ best +│ GPU 1 predicted us/)
  expect(text).toMatch(/f16 +│ m=64,n=2 +│ fused +│ 16000 +│ \d+ +│ \d+ +│ 0.500 +│ \* +│ 8000 /)
  expect(text).toMatch(/fused +│ all +│ 1.000 /)
  expect(text).toContain("by the GPU's clock")
  expect(text).toContain('a note')
})

it('prints Markdown whose rows have equal columns, and CSV with all digits', async () => {
  const result = await run()
  const rows = suiteMarkdown(result)
    .split('\n')
    .filter((line) => line.startsWith('|'))
  expect(rows[0]).toContain('| median us |')
  const columns = rows.map((row) => row.split('|').length)
  expect(new Set(columns.slice(0, 10)).size).toBe(1)
  expect(rows[5]).toMatch(/f32 \| m=64,n=2 \| fused \| 32000 .*\*\*best\*\*/)
  const [head = '', ...lines] = suiteCsv([result, { ...result, suite: 'the, other' }])
    .trimEnd()
    .split('\n')
  expect(lines).toHaveLength(16)
  expect(lines[0]).toMatch(/^layer,layer,cuda GPU 1,cuda,f32,"m=1,n=2",unfused,false,1000,/)
  expect(lines[8]).toMatch(/^"the, other",/)
  expect(new Set(lines.map((line) => line.replace(/"[^"]*"/g, '').split(',').length))).toEqual(new Set([head.split(',').length]))
})

const script = (body: string): readonly [string, ...string[]] => [
  process.execPath,
  '-e',
  `const asked = JSON.parse(require('node:fs').readFileSync(0, 'utf8')); ${body}`,
]

it('times peers by their commands, and says why one has no times', async () => {
  const all =
    'for (const { dtype, dims } of asked.cells) console.log(JSON.stringify({ dtype, dims, milliseconds: [asked.repeats] }))'
  const peers = {
    whole: script(`console.log('loading'); ${all}`),
    part: script(`asked.cells.length = 1; ${all}; console.log(JSON.stringify({ dtype: 'f16', dims: {}, error: 'too large' }))`),
    failing: script("throw new Error('no such framework')"),
    absent: ['no-such-program-of-heddle'] as const,
  }
  const result = await timeSuite({ ...suite, peers }, 'bench.ts', stage, host)
  const whole = rated(result).filter(({ plan }) => plan === 'whole')
  expect(whole.map(({ peer, milliseconds }) => [peer, milliseconds.median])).toEqual(Array(4).fill([true, 30]))
  expect(result.cells.filter(({ plan }) => plan === 'part')).toHaveLength(1)
  expect(Object.keys(result.problems)).toEqual(['part', 'failing', 'absent'])
  expect(result.problems.part).toBe('too large (3 of 4 missing)')
  expect(suiteText(result)).toContain('absent was not timed: ')
})

it('times no peers beside prices', async () => {
  const model = given(() => 1, 'model h200')
  const result = await timeSuite({ ...suite, peers: { torch: ['no-such-program'] } }, 'bench.ts', model, host)
  expect(result.problems).toEqual({})
  expect(suiteText(result)).toMatch(/predicted us/)
  expect(suiteText(result)).not.toMatch(/low us/)
})

it('checks every shape before anything is timed', async () => {
  const timed: string[] = []
  const picky = {
    ...stage,
    completed: (_: string, { m = 0 }: Readonly<Record<string, number>>) => {
      if (m === 64) throw new Error('no such shape')
      return { m }
    },
    time: async () => {
      timed.push('timed')
      return []
    },
  }
  await expect(timeSuite(suite, 'bench.ts', picky, host)).rejects.toThrow('no such shape')
  expect(timed).toEqual([])
})
