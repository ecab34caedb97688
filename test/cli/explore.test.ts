/** `heddle explore` of measured runs, and its refusals. search.test.ts covers plans and kernels. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { explorerSchema } from '../../src/explorer/model.js'
import { benchResult, planTimes } from '../bench/results.js'
import { heddle } from './host.js'

const folder = mkdtempSync(join(tmpdir(), 'heddle-explore-'))
const file = (name: string): string => join(folder, name)

beforeAll(() => {
  writeFileSync(file('run.json'), JSON.stringify(benchResult([planTimes('unfused', [1, 32], 0.8, 0.04, undefined)])))
  writeFileSync(file('other.json'), '{ "weight": 3 }')
})
afterAll(() => rmSync(folder, { recursive: true }))

it('shows a single run, as a page and as JSON', async () => {
  const { exitCode, out, log } = await heddle(['explore', '--bench', file('run.json'), '--out', file('page.html'), '--json'])
  expect(exitCode, log).toBe(0)
  const { opens, bench, plan } = explorerSchema.parse(JSON.parse(out))
  expect([opens, bench?.runs.map(({ rows }) => rows.map(({ name }) => name)), plan]).toEqual(['bench', [['unfused']], undefined])
  expect(readFileSync(file('page.html'), 'utf8').includes('Encoder plans on NVIDIA H200')).toBe(true)
})

it.each([
  ['a file that is not a run', ['--bench', file('other.json')], 'explore.bench', 'not a result of heddle bench'],
  ['a file that is not there', ['--bench', file('none.json')], 'explore.bench', 'none.json'],
  ['three runs', [1, 2, 3].flatMap(() => ['--bench', file('run.json')]), 'explore.bench', 'one or two runs'],
  ['a folder that is not there', ['--bench', file('run.json'), '--out', file('a/b.html')], 'explore.out', 'exists'],
  [
    'a plan of something other than a graph',
    ['encoder_layer_glu', '--plan', 'ft-v1'],
    'explore.subject',
    ': encoder_layer_gelu, ',
  ],
  ['no port', ['--port', '70000'], 'cli.usage', 'Expected a port'],
])('refuses %s', async (_, argv, code, said) => {
  const { exitCode, log } = await heddle(['explore', ...argv])
  expect(exitCode).toBe(2)
  expect(log).toContain(code)
  expect(log).toContain(said)
})
