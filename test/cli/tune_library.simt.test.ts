/** Subjects and refusals of `heddle tune --library`, without a GPU. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { distinctMatmuls } from '../../src/bench/library/collect.js'
import { recordEncoder } from '../../src/bench/library/encoder.js'
import { expectLibrary, matmulsOf as modelMatmuls, type TuneLibraryOptions } from '../../src/cli/tune_library.js'
import { recording } from '../../src/runtime/recording.js'
import { formatTuning } from '../../src/schedule/tuning/tuning.js'
import { searchManifests } from '../../src/toolchain/index.js'
import { fakeInfo } from '../bench/library/fake.js'
import { refusal } from '../refusal.js'
import { heddle, repository } from './host.js'

const { manifest } = await searchManifests(repository)

async function matmulsOf(plan: string, dtype: 'f16' | 'f32' = 'f16') {
  const recorded = recording('cuda', '90')
  await recordEncoder(recorded, manifest, { heads: 3, size: 10, shapes: [{ batch: 2, seq: 5 }], dtype, plans: [plan] })
  return distinctMatmuls(recorded.matmuls()).map(({ matmul, used }) => [matmul.extents.join(' x '), used.length])
}

test('an encoder layer has eight matmuls of the library, three of one kind', async () => {
  expect(await matmulsOf('unfused')).toEqual([
    ['1 x 10 x 30 x 30', 4],
    ['6 x 5 x 5 x 10', 1],
    ['6 x 5 x 10 x 5', 1],
    ['1 x 10 x 120 x 30', 1],
    ['1 x 10 x 30 x 120', 1],
  ])
})

test('plans determine the matmuls: one for queries, keys and values, and int8 into int32', async () => {
  expect(await matmulsOf('ft-v2.1')).toContainEqual(['1 x 10 x 90 x 30', 1])
  expect(await matmulsOf('int8-row')).toEqual(await matmulsOf('unfused'))
  expect(await matmulsOf('best-encoder')).toEqual([])
})

const context = { root: repository, signal: new AbortController().signal, verbose: false, out: () => {}, log: () => {} }
const gpu = { kind: 'cuda', info: () => fakeInfo } as const
const asked: TuneLibraryOptions = {
  ...{ plans: ['unfused'], dtype: 'f16', shapes: [{ batch: 2, seq: 8 }], heads: 3, size: 10, most: 8, repeats: 1 },
}

test.each([
  ['an encoder', 'kjv-punct-bert', '1 x 16 x 6 x 128', 'classifier/classes'],
  ['a decoder behind one', 'number-words', '1 x 2 x 512 x 128', 'step0/layer0/fc1'],
])('the matmuls of %s are those that it runs at the shape', async (_, model, extents, label) => {
  const options = { ...asked, model: `test/data/models/${model}` }
  const found = await modelMatmuls(gpu, manifest, options, context)
  expect(found.find(({ used }) => used.includes(label))?.matmul.extents.join(' x ')).toBe(extents)
})

test('a plan without library matmuls is refused', async () => {
  const found = modelMatmuls(gpu, manifest, { ...asked, plans: ['best-encoder'] }, context)
  await expect(found).rejects.toMatchObject({ code: 'tune.matmuls', message: expect.stringContaining('under best-encoder') })
  await expect(modelMatmuls(gpu, manifest, { ...asked, plans: ['none'] }, context)).rejects.toMatchObject({
    code: 'plan.unknown',
  })
})

test('gen takes a tuning file of matmuls in a folder without specs, and no other', async () => {
  const root = await mkdtemp(join(tmpdir(), 'heddle-library-'))
  try {
    await mkdir(join(root, 'specs'))
    const kept = { device: 'a GPU', library: 130100, matmul: 'x', algorithm: '07'.repeat(64), config: 'id 7' }
    const entry = { ...kept, measured: { first: 2, algorithm: 1 } }
    await writeFile(join(root, 'specs', 'tuning.json'), formatTuning([], [entry]))
    expect(await heddle(['gen'], root)).toMatchObject({ exitCode: 0 })
    const found = await searchManifests(root)
    expect(found.manifest.matmuls).toEqual([entry])
    expect(found.manifest.kernels.length).toBe(manifest.kernels.length)
    await writeFile(join(root, 'specs', 'tuning.json'), formatTuning([]))
    expect((await heddle(['gen'], root)).log).toMatch(/frontend\.(no_specs|heddle)/)
  } finally {
    await rm(root, { recursive: true })
  }
})

test('the CPU device has nothing to tune', async () => {
  const { exitCode, log } = await heddle(['tune', '--library', '--device', 'simt', '--out', '/tmp/never.json'])
  expect(exitCode).toBe(3)
  expect(log).toContain('the CPU device has one matmul algorithm: there is no library to tune')
  const cuda = { kind: 'cuda', name: 'a GPU', matmulVersion: 0 } as const
  expect(await refusal(() => expectLibrary(cuda))).toMatchObject({ code: 'tune.library', exitCode: 3 })
  expect(() => expectLibrary({ ...cuda, matmulVersion: 130100 })).not.toThrow()
})

test.each([
  ['a model and a graph', ['--model', 'a', '--graph', 'b']],
  ['dimensions of no graph', ['--dims', 'm=4']],
  ['scales of no model', ['--scales', 'scales.json']],
])('%s are incompatible', async (_, words) => {
  const { exitCode, log } = await heddle(['tune', '--library', '--out', '/tmp/never.json', ...words])
  expect(exitCode).toBe(2)
  expect(log).toContain('tune.matmuls')
})
