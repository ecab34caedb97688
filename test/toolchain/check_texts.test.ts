/** A check of CUDA sources: the sources that it compiles, their architectures, and its findings of compile errors and spills. */
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { recordFile } from '../../src/emit/write.js'
import { checkTexts, oneOfEachOp, samples } from '../../src/toolchain/check_texts.js'
import { cacheFolder } from '../../src/toolchain/index.js'
import type { KernelResources } from '../../src/toolchain/ptxas.js'
import { placeOf, type RecordedText, readRecord } from '../../src/toolchain/record.js'
import { refuseDifferent } from '../../src/toolchain/record_check.js'
import { projectWithNvcc } from './fake_nvcc.js'
import type { TestProject } from './project.js'

let project: TestProject

const held = async (texts: Readonly<Record<string, string>> = kernels, code?: Parameters<typeof projectWithNvcc>[1]) => {
  const made = await projectWithNvcc(texts, code)
  project = made.project
  return made
}

afterEach(async () => {
  vi.unstubAllEnvs()
  await rm(project.root, { recursive: true, force: true })
})

const kernels = Object.fromEntries(
  ['one', 'two', 'three'].flatMap((op) => ['f16', 'f32'].map((type) => [`${op}__${type}`, `int ${op}__${type};\n`])),
)

/** Compiled sources, one per compiler run. */
async function runs(): Promise<readonly string[]> {
  const objects = join(cacheFolder(), 'objects')
  const folders = (await readdir(objects).catch(() => [])).filter((name) => !name.startsWith('.'))
  return Promise.all(folders.map((name) => readFile(join(objects, name, 'stderr.txt'), 'utf8')))
}

const count = (text: string, what: RegExp) => [...text.matchAll(what)].length

test('without a record, every source is compiled for sm_90, one instance of each op for sm_80, to machine code only', async () => {
  const { generated } = await held()
  expect(await checkTexts({ generated })).toEqual({ texts: { sm_90: 6, sm_80: 3 }, kernels: 9, compiled: 9, record: 'none' })
  const texts = await runs()
  expect(texts).toHaveLength(2)
  for (const run of texts) {
    expect(run).toContain(' -cubin ')
    expect(run).not.toContain(' -c ')
    expect(count(run, /^int /gm)).toBe(run.includes('code=sm_90a') ? 6 : 3)
  }
  for (const op of ['one', 'two', 'three']) expect(count(texts.join(), new RegExp(`^int ${op}__`, 'gm'))).toBe(3)
})

test('a source that does not compile is distinguished from the others of its unit', async () => {
  const { generated } = await held({ ...kernels, four__f16: 'WRONG\n' })
  await expect(checkTexts({ generated, record: true })).rejects.toMatchObject({
    code: 'build.compile',
    message: expect.stringMatching(/^1 of 7 files do not compile\nop four: nvcc refused .*four__f16\.cu/),
  })
})

test('a spill on either architecture is found, and never recorded, nor believed of a record', async () => {
  const { generated } = await held({ four__f16: 'int four__f16;\n// SPILL\n' })
  const spill = { code: 'build.spill', message: expect.stringContaining('(cuda/four__f16.cu) spills on sm_80: 8 bytes stored') }
  await expect(checkTexts({ generated, record: true })).rejects.toMatchObject(spill)
  expect(await readRecord(generated)).toBeUndefined()
  await project.write('generated/cuda/four__f16.cu', 'int four__f16;\n')
  await checkTexts({ generated, record: true })
  await change(generated, (line) => line.replace('["spin",0,32,16]', '["spin",0,32,16,0,8,8]'))
  await expect(checkTexts({ generated })).rejects.toMatchObject(spill)
})

test('too much static shared memory is not believed of a record', async () => {
  const { generated } = await held({ four__f16: 'int four__f16;\n' })
  await checkTexts({ generated, record: true })
  await change(generated, (line) => line.replace('["spin",0,32,16]', '["spin",0,32,49156]'))
  await expect(checkTexts({ generated })).rejects.toMatchObject({
    code: 'build.shared',
    message: expect.stringContaining('at most 49152 bytes of static shared memory, got 49156'),
  })
})

test('a load before the wait is found in machine code, and never recorded', async () => {
  const [wait, load] = [0x82e, 0x981]
  const { generated } = await held({ a__f16: 'int a__f16;\n' }, { _Z4spinv: [wait, load], _Z5earlyv: [load, wait] })
  await expect(checkTexts({ generated, record: true })).rejects.toMatchObject({
    code: 'build.early',
    message: expect.stringMatching(
      /^early \(cuda\/a__f16\.cu\): instruction 0 loads memory that may change before the first wait$/,
    ),
  })
  expect(await readRecord(generated)).toBeUndefined()
})

/** Changes the lines of a record. */
async function change(generated: string, how: (line: string) => string): Promise<void> {
  const file = join(generated, recordFile)
  await writeFile(file, (await readFile(file, 'utf8')).split('\n').map(how).join('\n'))
}

test('recorded sources are compiled in part, all of them in eight checks, and wrong records are found there', async () => {
  const { generated } = await held(many)
  expect(await checkTexts({ generated, record: true })).toMatchObject({ compiled: 80, record: 'written' })
  const whole = { texts: { sm_90: 40, sm_80: 40 }, record: 'tried' }
  const parts: number[] = []
  for (let sample = 0; sample < samples; sample++) {
    const found = await checkTexts({ generated, sample })
    expect(found).toMatchObject(whole)
    parts.push(found.compiled)
  }
  expect(parts.reduce((sum, part) => sum + part)).toBe(80)
  expect(Math.max(...parts)).toBeLessThan(80 / 2)
  expect(await checkTexts({ generated, sample: 'all' })).toMatchObject({ ...whole, compiled: 80 })
  // The default part is the same for the same sources.
  expect(parts).toContain((await checkTexts({ generated })).compiled)

  // Registers depend on the other sources of a unit: one step of them is not a difference.
  await change(generated, (line) => (line.includes('op7__f32.cu","arch":"sm_90') ? line.replace(',32,', ',24,') : line))
  expect((await checkTexts({ generated, sample: 'all' })).record).toBe('tried')
  await change(generated, (line) => (line.includes('op7__f32.cu","arch":"sm_90') ? line.replace(',24,', ',23,') : line))
  const found = await Promise.allSettled(parts.map((_, sample) => checkTexts({ generated, sample })))
  const refused = found.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
  expect(refused).toMatchObject([{ code: 'build.record', message: expect.stringContaining('for cuda/op7__f32.cu sm_90\n') }])
  await checkTexts({ generated, record: true, sample: 'all' })
  expect((await checkTexts({ generated, sample: 'all' })).record).toBe('tried')
})

test('kernels of a file are compared by name, in any order: one step of registers is equal, all else is not', () => {
  const kernel = (name: string, registers: number, more: Partial<KernelResources> = {}): KernelResources => {
    const none = { sharedBytes: 0, stackBytes: 0, spillStoreBytes: 0, spillLoadBytes: 0 }
    return { kernel: name, arch: 'sm_90', threads: 128, registers, ...none, ...more }
  }
  const text = (...resources: readonly KernelResources[]) => ({ text: 'cuda/one.cu', arch: 'sm_90', key: 'key', resources })
  const recorded = text(kernel('a', 40), kernel('b', 96))
  const refuse = (made: RecordedText) => () =>
    refuseDifferent([made], { keys: [], current: new Map([[placeOf(recorded), recorded]]), stale: new Set() })
  expect(refuse(text(kernel('b', 90), kernel('a', 48)))).not.toThrow()
  for (const made of [
    text(kernel('b', 96), kernel('a', 49)),
    text(kernel('a', 40)),
    text(kernel('a', 40), kernel('c', 96)),
    text(kernel('a', 40), kernel('b', 96, { sharedBytes: 8 })),
    text(kernel('a', 40), kernel('b', 96, { spillStoreBytes: 4 })),
  ])
    expect(refuse(made)).toThrow(/disagrees with nvcc for cuda\/one\.cu sm_90/)
})

const many = Object.fromEntries(
  Array.from({ length: 40 }, (_, i) => [`op${i}__f32`, `#include "${i % 12}.h"\nint op${i}__f32;\n`]),
)

test('an outdated record is refused before anything is compiled, and updated from the changed sources', async () => {
  const { generated } = await held()
  await checkTexts({ generated, record: true })
  await rm(join(cacheFolder(), 'objects'), { recursive: true })
  await project.write('generated/cuda/two__f16.cu', 'int two__f16;\n// new\n')
  const stale = {
    code: 'build.record',
    message: expect.stringMatching(/^resources\.jsonl is outdated for [12] files: cuda\/two__f16/),
  }
  await expect(checkTexts({ generated })).rejects.toMatchObject(stale)
  await expect(checkTexts({ generated, filter: /^two/ })).rejects.toMatchObject(stale)
  expect(await runs()).toEqual([])
  expect(await checkTexts({ generated, filter: /^one/ })).toMatchObject({ texts: { sm_90: 2, sm_80: 1 }, compiled: 3 })
  expect((await checkTexts({ generated, record: true })).compiled).toBeLessThanOrEqual(2)
  expect((await checkTexts({ generated })).record).toBe('tried')

  // A merge that keeps both sides' lines is sorted out by their digests.
  const file = join(generated, recordFile)
  const text = await readFile(file, 'utf8')
  await writeFile(file, `${text.replace('\n', '\n<<<<<<< ours\n')}${text.split('\n')[1]?.replace('"key":"', '"key":"x')}\n`)
  await expect(checkTexts({ generated })).rejects.toMatchObject({
    code: 'build.record',
    message: expect.stringContaining('2 surplus lines'),
  })
  expect((await checkTexts({ generated, record: true })).compiled).toBe(0)
  expect(await readFile(file, 'utf8')).toBe(text)
})

test('a record is for one nvcc: another one compiles everything, and a missing one nothing', async () => {
  const { generated, install } = await held()
  await checkTexts({ generated, record: true })
  vi.stubEnv('HEDDLE_NVCC', join(project.root, 'none'))
  expect(await checkTexts({ generated })).toMatchObject({ compiled: 0, record: 'untried' })
  await install('2.0')
  expect(await checkTexts({ generated })).toMatchObject({ compiled: 9, record: 'other' })
  await expect(checkTexts({ generated, record: true, filter: /one/ })).rejects.toMatchObject({ code: 'build.check' })
  await checkTexts({ generated, record: true })
  expect((await readRecord(generated))?.nvcc).toContain('2.0')
})

test('the instance of an op that is compiled twice differs between ops', () => {
  const files = Array.from({ length: 40 }, (_, op) =>
    ['f16', 'f32'].map((type) => ({ source: type, path: `${op}_${type}`, op: `${op}` })),
  ).flat()
  const chosen = oneOfEachOp(files)
  expect(new Set(chosen.map(({ op }) => op)).size).toBe(40)
  expect(chosen).toHaveLength(40)
  expect(new Set(chosen.map(({ source }) => source))).toEqual(new Set(['f16', 'f32']))
})
