/** `heddle tune` on simt, from candidates to a kernel that uses the measured schedule. Times mean nothing here; choices and refusals do. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { layouts, ops } from '../../specs/index.js'
import { planTuning, type TunePlan } from '../../src/bench/tune_plan.js'
import { generateCandidates, writeGenerated } from '../../src/emit/index.js'
import { manifestSchema } from '../../src/emit/manifest/manifest.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import { loadedKernels } from '../../src/runtime/library.js'
import { choiceName, type ScheduleChoice } from '../../src/schedule/tuning/choice.js'
import { formatTuning, parseTuning, type TuningEntry } from '../../src/schedule/tuning/tuning.js'
import { buildKernels, demandKernels } from '../../src/toolchain/index.js'
import { casesOf } from '../../src/verify/cases.js'
import { runCase } from '../../src/verify/conformance.js'
import { openSimt, root } from '../conformance/simt.js'
import { heddle } from './host.js'

let work: string

beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), 'heddle-tune-'))
})

afterAll(() => rm(work, { recursive: true }))

const asked = ['--kernels', 'softmax', '--lengths', '33', '--rows', '40', '--dtype', 'f32', '--repeats', '4']

/** Entry of another kernel and another architecture, which must be preserved. */
const kept: TuningEntry = {
  kernel: 'layer_norm',
  dtype: 'f16',
  length: 768,
  architecture: 'sm_90',
  device: 'a GPU',
  variants: [
    {
      fromRows: 1,
      choice: { kind: 'rows', team: { kind: 'warp', lanes: 32, rowsPerBlock: 4 }, chunks: 3, vec: 8 },
      measured: [{ rows: 4096, rules: 6, choice: 5 }],
    },
  ],
}

test('tune, gen and the resulting kernel', async () => {
  const file = join(work, 'tuning.json')
  await writeFile(file, formatTuning([kept]))
  const tuned = await heddle(['tune', ...asked, '--device', 'simt', '--out', file])
  expect(tuned).toMatchObject({ exitCode: 0 })
  expect(tuned.out).toContain('softmax f32')
  expect(tuned.out).not.toContain('refused')
  const { entries } = parseTuning(await readFile(file, 'utf8'), file)
  expect(entries.slice(0, 1)).toEqual([kept])
  expect(entries.slice(1).every(({ architecture }) => architecture === 'simt')).toBe(true)

  // The result of the measurement depends on the machine, so the following uses a fixed choice.
  const choice: ScheduleChoice = { kind: 'rows', team: { kind: 'warp', lanes: 4, rowsPerBlock: 16 }, chunks: 5, vec: 2 }
  const measured = [{ rows: 40, rules: 2, choice: 1 }]
  const about = { kernel: 'softmax', dtype: 'f32', length: 33, architecture: 'simt', device: 'simt' }
  await writeFile(file, formatTuning([kept, { ...about, variants: [{ fromRows: 1, choice, measured }] }]))
  const generated = join(work, 'generated')
  expect(await heddle(['gen', '--tuning', file, '--out', generated])).toMatchObject({ exitCode: 0 })
  expect(await heddle(['gen', '--check', '--tuning', file, '--out', generated])).toMatchObject({ exitCode: 0 })
  const manifest = manifestSchema.parse(JSON.parse(await readFile(join(generated, 'manifest.json'), 'utf8')))
  const found = (key: string) => manifest.kernels.find((candidate) => candidate.key === key)
  expect(found('layer_norm__f16')?.variants[0]?.when).toContain('measured on a GPU: 5 us instead of 6 at 4096 rows')
  const entry = found('softmax__f32')
  if (entry === undefined) throw new Error('there is no softmax__f32')
  expect(entry.variants[0]?.schedule).toBe('4 lanes a row, 16 rows a block; 5 x 2 values a lane in registers')

  const { library } = await demandKernels([{ entry, folder: generated }], { target: 'simt', root })
  const device = await openSimt()
  try {
    const subject = { device, library: loadedKernels(device.loadLibrary(library)), layouts, ops }
    const cases = casesOf(entry).filter(({ dims }) => [31, 32, 33, 64, 65].includes(dims.n ?? 0))
    expect(cases.length).toBeGreaterThan(20)
    for (const each of cases) expect(await runCase(subject, each)).toMatchObject({ passed: true })
  } finally {
    device.close()
  }
})

/** Neither sums nor stores the last of 33 values of a row. */
const wrong: ScheduleChoice = { kind: 'rows', team: { kind: 'warp', lanes: 32, rowsPerBlock: 4 }, chunks: 1, vec: 1 }

test('a candidate that computes something else is refused and never chosen, however fast', async () => {
  const { kernels } = readSpecsOrThrow({ root, specs: ['specs'] })
  const request = { target: 'simt', kernels: ['softmax'], lengths: [{ length: 33 }], dtype: 'f32' } as const
  const { plan, sets } = planTuning(kernels, [], request)
  const key = `softmax__f32__${choiceName(wrong)}`
  const only = { key, choice: wrong, keepsOrder: true }
  const planted: TunePlan = {
    ...plan,
    kernels: plan.kernels.map((kernel) => ({ ...kernel, lengths: [{ length: 33, candidates: [only] }] })),
  }
  const folder = join(work, 'planted')
  await writeGenerated(
    join(folder, 'generated'),
    generateCandidates(sets.map(({ instance }) => ({ instance, choices: [wrong] }))),
  )
  await writeFile(join(folder, 'candidates.json'), JSON.stringify(planted))
  await buildKernels({ target: 'simt', root, generated: join(folder, 'generated'), outDir: join(folder, 'simt') })
  const file = join(work, 'planted.json')
  const { exitCode, out } = await heddle(['tune', '--candidates', folder, '--rows', '40', '--repeats', '4', '--out', file])
  expect(exitCode).toBe(0)
  expect(out).toContain(`refused ${key} at 33: y: 1221 of 1221 elements differ`)
  expect(parseTuning(await readFile(file, 'utf8'), file).entries).toEqual([])
})

describe('refusals', () => {
  test.each([
    ['an unknown kernel', ['tune', '--kernels', 'none', '--device', 'simt', '--prepare', 'never'], 'tune.kernel'],
    [
      'rows that follow from other extents',
      ['tune', '--kernels', 'pack_rows', '--device', 'simt', '--prepare', 'never'],
      'tune.kernel',
    ],
    ['a folder without candidates', ['tune', '--candidates', '/nowhere'], 'tune.plan'],
    ['lengths that are not numbers', ['tune', '--lengths', '3,x'], 'cli.usage'],
    ['both halves at once', ['tune', '--prepare', 'a', '--candidates', 'b'], 'cli.usage'],
    ['a tuning file that is not there', ['gen', '--tuning', '/nowhere.json', '--out', '/tmp'], 'tuning.missing'],
  ])('%s', async (_, argv, code) => {
    const { exitCode, log } = await heddle(argv)
    expect({ exitCode, log }).toEqual({ exitCode: 2, log: expect.stringContaining(`error[${code}]`) })
  })
})
