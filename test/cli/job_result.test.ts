/** Results of packed commands: read as results of the verb, and refused when they are cut, changed, newer, of another verb, or of something else. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readResult, resultText } from '../../src/cli/job_result.js'
import { heddle } from './host.js'

let folder: string
let path: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heddle-result-'))
  path = join(folder, 'result.json')
})
afterAll(() => rm(folder, { recursive: true }))

const commit = { id: '0123456789abcdef0123456789abcdef01234567', changed: false }
const about = { at: '2026-01-02T03:04:05.000Z', commit, versions: { heddle: '0.1.0' }, facts: { cores: 2 } }
const milliseconds = { median: 2, low: 1, high: 3, best: 1, samples: 5 }
const cell = { plan: 'add', peer: false, dtype: 'f32', dims: { m: 2 }, samples: [1, 2, 3, 2, 2], milliseconds, profile: [] }
const suite = {
  suite: 'adds',
  subject: 'add',
  file: 'bench.ts',
  versus: 'add',
  clock: 'simt',
  device: 'simt cpu',
  problems: {},
  notes: [],
}
const argv = ['bench', 'suite', '--repeats', '5']
const text = resultText({ argv, about, result: [{ ...suite, cells: [cell] }] })

test('a suite is printed, and saved with the commit of the pack and the facts of the machine', async () => {
  await writeFile(path, text)
  const read = await heddle(['bench', 'suite', '--read', path, '--save'], folder)
  expect(read).toMatchObject({ exitCode: 0 })
  expect(read.out).toMatch(/f32 +│ m=2 +│ add +│ 2000 /)
  const [line = ''] = (await readFile(join(folder, 'bench-history.jsonl'), 'utf8')).split('\n')
  expect(JSON.parse(line)).toMatchObject({
    at: about.at,
    commit,
    suite: 'adds',
    device: { name: 'simt cpu', facts: { cores: 2 } },
  })
  expect((await heddle(['bench', 'history'], folder)).out).toContain('1 run of 1 suite')
})

test('a check that failed there fails here', async () => {
  const failures = [{ name: 'm=1', passed: false, detail: 'y: element 0 is 1, expected 0' }]
  const group = { kind: 'op', name: 'add__f32', op: 'add', against: 'body', tried: 2, passed: 1, failures, seconds: 1 }
  const device = { kind: 'simt', name: 'cpu' }
  const result = { device, passed: 1, failed: 1, untried: 0, groups: [group], apart: [] }
  await writeFile(path, resultText({ argv: ['check'], about, result }))
  const read = await heddle(['check', '--read', path], folder)
  expect(read).toMatchObject({ exitCode: 1, out: '1 passed, 1 failed\n' })
  expect(read.log).toContain('FAIL add__f32: 1 of 2 differ (1.0 s)\n  m=1: y: element 0 is 1, expected 0')
})

test.each([
  ['cut', text.slice(0, -40), 'result.damaged'],
  ['changed', text.replace('[1,2,3,2,2]', '[1,2,3,2,1]'), 'result.damaged'],
  ['without a field', text.replace('"argv":["bench","suite","--repeats","5"],', ''), 'result.damaged'],
  ['newer', text.replace('"version":1', '"version":2'), 'result.newer'],
  ['of other JSON', '{"version":1,"results":[]}', 'result.foreign'],
  ['of no JSON', 'times', 'result.foreign'],
])('a file that is %s is refused', async (_, content, code) => {
  await writeFile(path, content)
  await expect(readResult(path, 'bench suite')).rejects.toMatchObject({ code, message: expect.stringContaining(path) })
})

test('a file of another verb is refused with the verb that reads it, and a missing file', async () => {
  await writeFile(path, text)
  await expect(readResult(path, 'check')).rejects.toMatchObject({
    code: 'result.verb',
    message: `${path} is the result of heddle bench suite --repeats 5`,
    hint: `heddle bench suite --read ${path}`,
  })
  await expect(readResult(join(folder, 'none'), 'check')).rejects.toMatchObject({ code: 'result.foreign' })
  // Nothing runs where a result is read.
  const { exitCode, log } = await heddle(['check', '--read', path, '--on', 'box'], folder)
  expect({ exitCode, log }).toMatchObject({
    exitCode: 2,
    log: expect.stringContaining("cannot be used with option '--on <host>'"),
  })
})
