/** Histories: files of runs, regressions by name, and their text, annotations and provenance. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { appendHistory, commitText, entryOf, type HistoryEntry, readHistory } from '../../../src/bench/history/entry.js'
import { commitOf, gpuState } from '../../../src/bench/history/provenance.js'
import { changesOf, newRegressions, seriesOf } from '../../../src/bench/history/regressions.js'
import { annotations, historyMarkdown, historyText } from '../../../src/bench/history/text.js'
import { timeSuite } from '../../../src/bench/suite/run.js'
import { given, host, suite } from '../suite/given.js'

const commits = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(40))

/** A run at the commit of a number, in which fused takes a share of unfused. */
async function run(commit: number, share: (m: number) => number, clock?: 'model h200'): Promise<HistoryEntry> {
  const result = await timeSuite(suite, 'bench.ts', given(share, clock), host)
  return entryOf(result, {
    at: `2026-01-0${commit + 1}T00:00:00.000Z`,
    commit: { id: commits[commit] ?? '', changed: false },
    versions: { heddle: '1.0.0', node: '20' },
    facts: { driver: 1 },
  })
}

const half = (): number => 0.5
/** Slower at 64 rows since the third commit. */
const history = async (): Promise<HistoryEntry[]> => [
  await run(0, half),
  await run(1, half),
  await run(2, (m) => (m === 64 ? 0.8 : 0.5)),
]

const changes = async (entries: readonly HistoryEntry[], limit = 1.05) => changesOf(seriesOf(entries), limit)

describe('a regression', () => {
  it('has the names of plan, shape, type, kernel and commit', async () => {
    const found = await changes(await history())
    expect(found).toHaveLength(2)
    expect(found[0]).toMatchObject({
      ...{
        plan: 'fused',
        dtype: 'f32',
        dims: { m: 64, n: 2 },
        verdict: 'slower',
        since: 'ccccccc',
        last: 'bbbbbbb',
        isNew: true,
      },
      kernels: [{ kernel: 'heavy' }],
    })
    expect(found[0]?.ratio).toBeCloseTo(1.6, 6)
    expect(newRegressions(found)).toHaveLength(2)
    const text = historyText({ runs: 3, suites: 1 }, found)
    expect(text).toMatch(
      /ccccccc +│ slower +│ layer +│ f32 +│ m=64,n=2 +│ fused +│ 32000 +│ 51200 +│ 1\.600 +│ heavy \(25600 to 44800 us\)/,
    )
    expect(historyMarkdown({ runs: 3, suites: 1 }, found)).toContain('| ccccccc | slower | layer | f32 |')
  })

  it('is an annotation of a workflow while it is new, and none later', async () => {
    const entries = await history()
    const lines = annotations(await changes(entries))
      .trimEnd()
      .split('\n')
    expect(lines).toHaveLength(2)
    expect(lines[0]).toMatch(/^::warning file=bench\.ts,title=heddle bench layer::fused f32 m=64,n=2 is slower, 1\.60 times /)
    const later = await changes([...entries, await run(3, (m) => (m === 64 ? 0.8 : 0.5))])
    expect(later.map(({ isNew, by }) => [isNew, by])).toEqual(Array(2).fill([false, 'runs']))
    expect([annotations(later), newRegressions(later)]).toEqual(['', []])
  })

  it('is no longer one once the times are back, which is a change to faster', async () => {
    const found = await changes([...(await history()), await run(3, (m) => (m === 64 ? 0.8 : 0.5)), await run(3, half)])
    expect(found.map(({ verdict, isNew }) => [verdict, isNew])).toEqual([
      ['slower', false],
      ['faster', true],
      ['slower', false],
      ['faster', true],
    ])
    expect(annotations(found)).toMatch(/^::notice /)
  })

  it('of prices needs one run each, and is none within the limit', async () => {
    const entries = [await run(0, half, 'model h200'), await run(1, () => 0.6, 'model h200')]
    expect((await changes(entries)).map(({ by }) => by)).toEqual(Array(4).fill('price'))
    expect(await changes(entries, 1.25)).toEqual([])
  })
})

it('prices and times, and two devices, are not compared', async () => {
  const slow = await run(1, () => 0.9)
  const entries = [
    await run(0, half),
    await run(0, half, 'model h200'),
    { ...slow, device: { ...slow.device, name: 'cuda GPU 2' } },
  ]
  expect(await changes(entries)).toEqual([])
  expect(historyText({ runs: 3, suites: 1 }, [])).toBe('3 runs of 1 suite, no change\n')
})

it('signs of workflow commands are escaped', async () => {
  const [change] = await changes(await history())
  const odd = change === undefined ? [] : [{ ...change, file: 'a,b:c.ts', suite: 'x\n::error::y', plan: '50%\nz' }]
  expect(annotations(odd)).toMatch(
    /^::warning file=a%2Cb%3Ac\.ts,title=heddle bench x%0A%3A%3Aerror%3A%3Ay::50%25%0Az f32 [^\n]*\n$/,
  )
})

describe('a file', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'heddle-history-'))
  })
  afterAll(() => rm(folder, { recursive: true }))

  it('gets lines at its end, is read by time, and is empty if it does not exist', async () => {
    const path = join(folder, 'runs.jsonl')
    expect(await readHistory(path)).toEqual([])
    const [first, second] = await history()
    if (first === undefined || second === undefined) throw new Error('there are three runs')
    await appendHistory(path, [second])
    await appendHistory(path, [first])
    expect((await readFile(path, 'utf8')).trimEnd().split('\n')).toHaveLength(2)
    expect(await readHistory(path)).toEqual([first, second])
    expect(commitText(first)).toBe('aaaaaaa')
    expect(commitText({ at: first.at })).toBe('2026-01-01 00:00')
  })

  const line = async (): Promise<string> => JSON.stringify(await run(0, half))
  test.each([
    ['marks of a merge', async () => `${await line()}\n<<<<<<< HEAD\n`, /:2: expected JSON/],
    ['another version', async () => (await line()).replace('"version":1', '"version":2'), /:1: version: /],
    ['an unknown field', async () => (await line()).replace('"version":1', '"version":1,"host":"x"'), /Unrecognized key/],
    ['times below nothing', async () => (await line()).replace(/"samples":\[[^\]]*/, '"samples":[-1'), /cells\.0\.samples\.0/],
    ['a baseline', async () => '{"version":1,"subject":"a","device":"b","dtype":"f32","results":[]}', /:1: at: /],
  ])('with %s is refused by line, and not added to', async (_, text, message) => {
    const path = join(folder, 'wrong.jsonl')
    const content = await text()
    await writeFile(path, content)
    const refusal = { code: 'suite.history', message: expect.stringMatching(message) }
    await expect(readHistory(path)).rejects.toMatchObject(refusal)
    await expect(appendHistory(path, [await run(1, half)])).rejects.toMatchObject(refusal)
    expect(await readFile(path, 'utf8')).toBe(content)
  })
})

describe('provenance', () => {
  const answers =
    (by: Readonly<Record<string, string>>) =>
    async (file: string, args: readonly string[]): Promise<string | undefined> =>
      by[`${file} ${args[0]?.split('=')[0]}`]

  it('has the commit, and uncommitted changes other than the history', async () => {
    const [id = ''] = commits
    expect(await commitOf(answers({ 'git rev-parse': id, 'git status': '' }), 'h.jsonl')).toEqual({ id, changed: false })
    expect(await commitOf(answers({ 'git rev-parse': id, 'git status': ' M a.ts' }), 'h.jsonl')).toEqual({ id, changed: true })
    expect(await commitOf(answers({}), 'h.jsonl')).toBeUndefined()
  })

  it('has the clocks of a GPU, without those that are not supported', async () => {
    const ask = answers({ 'nvidia-smi --query-gpu': '1755, 2619, [N/A], 41' })
    expect(await gpuState(ask, 'GPU-1')).toEqual({ smMHz: 1755, memoryMHz: 2619, celsius: 41 })
    expect(await gpuState(answers({}), undefined)).toBeUndefined()
  })
})
