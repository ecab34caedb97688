/** Kernels on demand: only requested ones are compiled, once, and damage or refusal of one does not affect others. */
import { rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { stageKernels } from '../../src/toolchain/bundle_kernels.js'
import { expectOldGlibc, glibcNeed } from '../../src/toolchain/glibc.js'
import {
  buildKernels,
  bundledKernels,
  cacheFolder,
  demandKernels,
  type PlacedKernel,
  readBuildReport,
  readManifestOf,
  searchManifests,
} from '../../src/toolchain/index.js'
import { type TestProject, testProject } from './project.js'

/** A source that the registry can name: the launcher returns a number. */
const launcher = (op: string, result = 0): string =>
  `extern "C" int heddle_launch_${op}__f32(void*, void*) { return ${result}; }\n`

let project: TestProject
let kernels: readonly PlacedKernel[]

beforeEach(async () => {
  project = await testProject({ bad: 'int bad() { return missing_name; }\n', one: launcher('one'), two: launcher('two') })
  kernels = await placed()
})

afterEach(async () => {
  vi.unstubAllEnvs()
  await rm(project.root, { recursive: true, force: true })
})

async function placed(): Promise<PlacedKernel[]> {
  const { manifest, folderOf } = await searchManifests(project.root)
  return manifest.kernels.map((entry) => ({ entry, folder: folderOf(entry.key) }))
}

const named = (...ops: string[]) => kernels.filter(({ entry }) => ops.includes(entry.op))
const demand = (...ops: string[]) => demandKernels(named(...ops), { root: project.root, target: 'simt' })

test('requested kernels are compiled once, and each set is a separate library', async () => {
  const first = await demand('one')
  expect(first).toMatchObject({ compiled: 1 })
  expect(await demand('one')).toMatchObject({ compiled: 0, library: first.library })
  const both = await demand('one', 'two')
  expect(both.compiled).toBe(1)
  expect(both.library).not.toBe(first.library)
})

test('the order of asking changes nothing', async () => {
  const { library } = await demand('one', 'two')
  const reversed = await demandKernels([...named('one', 'two')].reverse(), { root: project.root, target: 'simt' })
  expect(reversed).toMatchObject({ compiled: 0, library })
})

test('a kernel that does not compile is named by its op, and the others are compiled', async () => {
  await expect(demand('bad', 'one')).rejects.toMatchObject({
    code: 'build.compile',
    exitCode: 1,
    message: expect.stringMatching(/1 of 2 files do not compile\nop bad: [\s\S]*missing_name/),
  })
  expect(await demand('one')).toMatchObject({ compiled: 0 })
})

test('a changed source is another object and another library', async () => {
  const { library } = await demand('one')
  await project.write('generated/cuda/one.cu', launcher('one', 1))
  const changed = await demand('one')
  expect(changed.compiled).toBe(1)
  expect(changed.library).not.toBe(library)
})

describe('a damaged', () => {
  test('library is linked again, from objects that are there', async () => {
    const { library } = await demand('one')
    await truncate(library, 100)
    expect(await demand('one')).toMatchObject({ compiled: 0, library })
  })

  test('object is compiled again', async () => {
    const { objects, library } = await demand('one')
    await writeFile(objects[0]?.object ?? '', 'damaged')
    expect(await demand('one')).toMatchObject({ compiled: 1, library })
  })
})

describe('the library of a whole build', () => {
  beforeEach(async () => {
    await project.write('generated/cuda/bad.cu', launcher('bad'))
  })

  test('is used while its objects are the requested ones', async () => {
    const { library } = await buildKernels({ target: 'simt', root: project.root })
    expect(await demand('one')).toEqual({ library, objects: [], compiled: 0 })
  })

  test.each([
    ['another text', () => project.write('generated/cuda/one.cu', launcher('one', 1))],
    ['a damaged library', () => project.write('.heddle/simt/libheddle_kernels.so', 'x')],
  ])('does not serve with %s', async (_, change) => {
    const { library } = await buildKernels({ target: 'simt', root: project.root })
    await change()
    const demanded = await demand('one')
    expect(demanded.library).not.toBe(library)
    expect(demanded.library.startsWith(join(cacheFolder(), 'libraries'))).toBe(true)
  })
})

test('a limit on the size of files is not a finding of an op', async () => {
  const said = 'g++: internal compiler error: File size limit exceeded signal terminated program as'
  const limited = await project.script(
    'limited',
    `[ "$1" = --version ] && { echo "limited 1.0"; exit 0; }\necho "${said}" >&2; exit 4`,
  )
  vi.stubEnv('CXX', limited)
  await expect(demand('one')).rejects.toMatchObject({
    code: 'cache.full',
    exitCode: 3,
    message: expect.stringContaining('ulimit -f'),
    hint: 'allow larger files: ulimit -f unlimited',
  })
})

test('a full disk is reported and leaves no partial file', async () => {
  const full = await project.script(
    'full',
    `[ "$1" = --version ] && { echo "full 1.0"; exit 0; }\necho "as: cannot write: No space left on device" >&2; exit 1`,
  )
  vi.stubEnv('CXX', full)
  await expect(demand('one')).rejects.toMatchObject({
    code: 'cache.full',
    exitCode: 3,
    hint: expect.stringContaining('HEDDLE_CACHE'),
  })
  vi.stubEnv('CXX', '')
  expect(await demand('one')).toMatchObject({ compiled: 1 })
})

describe('the bundle of a project', () => {
  test('has one library of its own kernels and of shipped ones, and a manifest of each', async () => {
    await project.write('generated/cuda/bad.cu', launcher('bad'))
    const used = await bundledKernels(project.root, { ops: [], keys: ['add__f32'] })
    if (used === undefined) throw new Error('the project has kernels of its own')
    const stage = join(project.root, 'stage')
    await stageKernels(stage, join(project.root, 'text'), project.root, ['simt'], used, undefined)
    const read = async (folder: string) =>
      (await readManifestOf(join(stage, folder), { asItLies: true })).kernels.map(({ key }) => key)
    expect(await read('generated')).toEqual(['bad__f32', 'one__f32', 'two__f32'])
    expect(await read('shipped')).toEqual(['add__f32'])
    const report = await readBuildReport(join(stage, 'simt', 'build.json'))
    expect(report?.digests?.map(({ key }) => key)).toEqual(['add__f32', 'bad__f32', 'one__f32', 'two__f32'])
    const library = join(stage, 'simt', 'libheddle_kernels.so')
    expectOldGlibc('libheddle_kernels.so', await glibcNeed(library, undefined))
  })
})
