/** `heddle search` on the CPU device: a plan that is measured, written, applied and checked, and a second search that changes nothing. */
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { CliContext } from '../../src/cli/context.js'
import { search } from '../../src/cli/search.js'
import { parseRecord } from '../../src/search/record.js'
import { heddle, repository } from './host.js'

let root: string
beforeAll(async () => {
  await mkdir(join(repository, '.heddle'), { recursive: true })
  root = await mkdtemp(join(repository, '.heddle', 'search-'))
  await cp(join(repository, 'test/projects/mixer/specs'), join(root, 'specs'), { recursive: true })
})
afterAll(() => rm(root, { recursive: true }))

const read = (file: string): Promise<string> => readFile(join(root, file), 'utf8')
const searching = (...argv: readonly string[]) =>
  heddle(['search', ...argv, '--device', 'simt', '--dtype', 'f32', '--repeats', '8'], root)
const small = ['mixer', '--shape', 'n=2,p=3,w=16,z=24']

test('a plan is found, written with reasons, accepted by gen, and stays in a second search', async () => {
  const { exitCode, log, out: first } = await searching(...small, '--minutes', '5')
  expect({ exitCode, log }).toMatchObject({ exitCode: 0 })
  let out = first
  // While other processes want the processor, whole plans may not differ enough: they are timed again, the groups are not.
  for (let attempt = 0; attempt < 5 && !out.includes('written'); attempt++) out = (await searching(...small)).out
  expect(log).toMatch(/6 nodes, \d+ groups.*\n(.*\n)*round 1: 0 of \d+ measured, best so far/)
  expect(out).toContain('written: specs/plans/found.ts')
  const [plan, record] = await Promise.all([read('specs/plans/found.ts'), read('specs/search.json')])
  expect(plan).toContain("import type { mixer } from '../index.js'")
  expect(plan).toMatch(/\/\/ [\d.]+ us; apart [\d.]+ us; next best /)
  const index = await read('specs/index.ts')
  const listed = index.replace('export const plans = [', 'export const plans = [\n  found(mixer),')
  await writeFile(join(root, 'specs/index.ts'), `import { found } from './plans/found.js'\n${listed}`)
  expect(await heddle(['gen'], root)).toMatchObject({ exitCode: 0 })
  expect(await heddle(['check', '--plan', 'found', '--device', 'simt', '--dtype', 'f32'], root)).toMatchObject({ exitCode: 0 })
  const again = await searching(...small, '--minutes', '5')
  expect(again.out).toContain('found stays: no plan is faster by more than 2 %')
  expect([await read('specs/plans/found.ts'), await read('specs/search.json')]).toEqual([plan, record])
  // An edited plan is refused before anything is measured.
  await writeFile(join(root, 'specs/plans/found.ts'), plan.replace('An ordinary plan', 'My plan'))
  const edited = await searching(...small)
  expect(edited.log).toContain('error[search.out]: specs/plans/found.ts was edited')
  expect(edited.log).not.toContain('round 1')
}, 300_000)

test('a search that is cut keeps what it measured, and the next goes on from it', async () => {
  const cut = join(root, 'cut')
  await cp(join(repository, 'test/projects/mixer/specs'), join(cut, 'specs'), { recursive: true })
  /** Searches until a line of its progress has the form, as Ctrl-C would end it. */
  const until = async (form: RegExp): Promise<string> => {
    const ending = new AbortController()
    let log = ''
    const context: CliContext = {
      ...{ root: cut, signal: ending.signal, verbose: false, out: () => undefined },
      log: (text) => {
        log += text
        if (form.test(text)) ending.abort(new Error('cancelled'))
      },
    }
    const options = { shape: [{ n: 2, p: 3, w: 16, z: 24 }], dtype: 'f32', device: 'simt', minutes: 5, from: 'unfused' } as const
    await expect(search('mixer', { ...options, plan: 'found', repeats: 8 }, context)).rejects.toThrow('cancelled')
    return log
  }
  expect(await until(/^ {2}\S+ [\dx]+: [\d.]+ us\n$/)).toContain('round 1: 0 of ')
  const { entries } = parseRecord(await readFile(join(cut, 'specs/search.json'), 'utf8'), 'search.json')
  expect(entries.length).toBeGreaterThan(0)
  expect(existsSync(join(cut, 'specs/plans'))).toBe(false)
  expect(await until(/^round 1: /)).toMatch(/round 1: [1-9]\d* of /)
}, 300_000)

test('an unknown graph, an unknown plan, and a file of somebody else are refused', async () => {
  expect((await searching('mixr')).log).toContain('error[search.graph]: there is no graph mixr')
  expect((await searching('mixer', '--plan', 'other', '--from', 'foldd')).log).toContain('error[plan.unknown]')
  await writeFile(join(root, 'other.json'), '{}')
  expect((await searching(...small, '--plan', 'other', '--record', 'other.json')).log).toContain('error[search.record]')
}, 60_000)
