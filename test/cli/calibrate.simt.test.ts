/** `heddle calibrate` on the example model: files, table and chart, import of what was exported, and refusals. */
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { readCheckpoint } from '../../src/models/encoder/calibration.js'
import { parseScales, readScales } from '../../src/quant/scales.js'
import { sites } from '../../src/quant/sites.js'
import { heddle, punctuationModel } from './host.js'

let work: string

beforeAll(async () => {
  const { exitCode, log } = await heddle(['build', '--target', 'simt', '--for', punctuationModel])
  expect({ exitCode, log }).toMatchObject({ exitCode: 0 })
})
beforeEach(async () => {
  work = await mkdtemp(join(tmpdir(), 'heddle-calibrate-'))
  const { items } = JSON.parse(await readFile(join(punctuationModel, 'test-set.json'), 'utf8')) as {
    items: { input_ids: number[] }[]
  }
  await writeFile(join(work, 'set.json'), JSON.stringify({ items: items.slice(0, 4) }))
  const lines = [...items.slice(0, 4).map(({ input_ids }) => ({ input_ids })), { text: 'in the beginning' }]
  await writeFile(join(work, 'cases.jsonl'), lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
})
afterEach(() => rm(work, { recursive: true }))

const at = (name: string): string => join(work, name)
const calibrate = (...argv: readonly string[]) => heddle(['calibrate', punctuationModel, '--device', 'simt', ...argv])

describe('heddle calibrate', () => {
  test('writes scales of this model, and shows them', async () => {
    const { exitCode, out, log } = await calibrate(
      '--cases',
      at('cases.jsonl'),
      '--out',
      at('s.json'),
      '--amax-list',
      at('a.json'),
    )
    expect({ exitCode, log }).toMatchObject({ exitCode: 0 })
    const { identity } = await readCheckpoint(punctuationModel)
    const scales = await readScales(at('s.json'), identity)
    expect(scales).toMatchObject({ method: { name: 'percentile', percentile: 99.99 }, calibration: { cases: 5, dtype: 'f32' } })
    expect(scales.layers).toHaveLength(4)
    expect(scales.layers.every((layer) => sites.every((site) => layer[site] > 0 && layer[site] < 100))).toBe(true)
    for (const site of sites) expect(out).toContain(`\n${site}\n  0 █`)
    expect(out).toContain('│ layer │ x ')
    expect(log).toContain('5 cases of ')
    expect(log).toContain('10/10 histograms')

    const imported = await heddle(['calibrate', punctuationModel, '--import', at('a.json'), '--out', at('again.json'), '--json'])
    expect(imported).toMatchObject({ exitCode: 0 })
    const again = await readScales(at('again.json'), identity)
    expect(again.layers).toEqual(
      scales.layers.map((layer) => Object.fromEntries(sites.map((site) => [site, Math.fround(layer[site])]))),
    )
    expect(JSON.parse(imported.out)).toMatchObject({ scales: { method: { name: 'imported' } } })
  })

  test('takes a labelled set, and chooses less than the largest magnitude where that pays', async () => {
    const chosen = async (...argv: readonly string[]) => {
      expect(await calibrate('--cases', at('set.json'), '--out', at('s.json'), ...argv)).toMatchObject({ exitCode: 0 })
      return parseScales(await readFile(at('s.json'), 'utf8'), 's.json').layers
    }
    const [max, mse, entropy, half] = [
      await chosen('--method', 'max'),
      await chosen('--method', 'mse'),
      await chosen('--method', 'entropy'),
      await chosen('--percentile', '50'),
    ]
    for (const other of [mse, entropy, half]) {
      expect(other.every((layer, i) => sites.every((site) => layer[site] <= (max[i]?.[site] ?? 0)))).toBe(true)
      expect(other).not.toEqual(max)
    }
    expect(half.every((layer, i) => layer.fc1Activation < 0.5 * (mse[i]?.fc1Activation ?? 0))).toBe(true)
  })

  const refusals: readonly (readonly [what: string, argv: (work: string) => readonly string[], message: RegExp])[] = [
    ['neither cases nor a list', () => [], /^error\[calibrate\.input\]: give either cases to run or a list to import\nhint: /],
    ['cases and a list', () => ['--cases', 'c', '--import', 'l'], /^error\[cli\.usage\]: .*cannot be used with/],
    ['no such file', (w) => ['--cases', join(w, 'none')], /^error\[run\.case\]: cannot read /],
    [
      'an unknown method',
      (w) => ['--cases', join(w, 'set.json'), '--method', 'best'],
      /^error\[cli\.usage\]: .*Allowed choices are max/,
    ],
    [
      'a percentile of 0',
      (w) => ['--cases', join(w, 'set.json'), '--percentile', '0'],
      /^error\[calibrate\.percentile\]: percentile is 0\n/,
    ],
    [
      'a percentile that is none',
      (w) => ['--cases', join(w, 'set.json'), '--percentile', 'x'],
      /^error\[cli\.usage\]: .*Expected a number/,
    ],
    [
      'a percentile of another method',
      (w) => ['--cases', join(w, 'set.json'), '--method', 'max', '--percentile', '99'],
      /^error\[calibrate\.percentile\]: the method max has no percentile\n/,
    ],
    ['no such list', (w) => ['--import', join(w, 'none')], /^error\[amax\.read\]: cannot read /],
    ['a list of another model', (w) => ['--import', join(w, 'set.json')], /^error\[amax\.json\]: /],
  ]
  test.each(refusals)('refuses %s and writes nothing', async (_, argv, message) => {
    const { exitCode, out, log } = await calibrate(...argv(work), '--out', at('s.json'))
    expect({ exitCode, out }).toEqual({ exitCode: 2, out: '' })
    expect(log).toMatch(message)
    expect(existsSync(at('s.json'))).toBe(false)
  })

  test('refuses tokens that the model does not have', async () => {
    await writeFile(at('bad.jsonl'), '{"input_ids":[1]}\n{"input_ids":[999999]}\n')
    const { exitCode, log } = await calibrate('--cases', at('bad.jsonl'), '--out', at('s.json'))
    expect({ exitCode, log }).toMatchObject({ exitCode: 2, log: expect.stringContaining('error[run.token]: case 1') })
  })
  test('refuses a missing model', async () => {
    const { exitCode, log } = await heddle(['calibrate', at('none'), '--cases', at('set.json'), '--out', at('s.json')])
    expect({ exitCode, log }).toMatchObject({
      exitCode: 2,
      log: expect.stringContaining('error[run.model]: there is no model folder'),
    })
  })
})
