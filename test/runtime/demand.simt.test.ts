/** Kernels requested by concurrent calls: each is compiled once, and a failure of one call does not stop another. */
import { rm } from 'node:fs/promises'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { demandedKernels } from '../../src/runtime/demand.js'
import { openDevice } from '../../src/runtime/device.js'
import type { KernelSource } from '../../src/runtime/library.js'
import type { NativeDevice } from '../../src/runtime/native.js'
import { type BuildProgress, searchManifests } from '../../src/toolchain/index.js'
import { type TestProject, testProject } from '../toolchain/project.js'

const launcher = (op: string): string => `extern "C" int heddle_launch_${op}__f32(void*, void*) { return 0; }\n`

let project: TestProject
let device: NativeDevice
let library: KernelSource
let progress: BuildProgress[]

beforeEach(async () => {
  project = await testProject({ bad: 'int bad() { return missing_name; }\n', one: launcher('one'), two: launcher('two') })
  device = openDevice('simt')
  progress = []
  const searched = await searchManifests(project.root)
  library = demandedKernels(device, searched, { root: project.root, onProgress: (step) => progress.push(step) })
})

afterEach(async () => {
  device.close()
  vi.unstubAllEnvs()
  await rm(project.root, { recursive: true, force: true })
})

test('a kernel that two calls need is compiled once, and progress counts both calls', async () => {
  await Promise.all([library.ensure(['one__f32']), library.ensure(['one__f32', 'two__f32']), library.ensure(['two__f32'])])
  expect(progress.map(({ source, cached }) => ({ source, cached })).sort((a, b) => (a.source < b.source ? -1 : 1))).toEqual([
    { source: 'cuda/one.cu', cached: false },
    { source: 'cuda/two.cu', cached: false },
  ])
  expect(progress.map(({ done, total }) => `${done}/${total}`)).toEqual(['1/2', '2/2'])
  expect(library.of('one__f32').kernels.map(({ key }) => key)).toEqual(['one__f32'])
  expect(library.of('two__f32').kernels.map(({ key }) => key)).toEqual(['two__f32'])
})

test('progress of a later call begins anew', async () => {
  await library.ensure(['one__f32'])
  await library.ensure(['two__f32'])
  expect(progress.map(({ done, total }) => `${done}/${total}`)).toEqual(['1/1', '1/1'])
})

test('a kernel that one call fails with is there for another', async () => {
  const [both, one] = await Promise.allSettled([library.ensure(['bad__f32', 'one__f32']), library.ensure(['one__f32'])])
  expect(both).toMatchObject({ status: 'rejected', reason: { code: 'build.compile' } })
  expect(one.status).toBe('fulfilled')
  expect(library.of('one__f32').kernels.map(({ key }) => key)).toEqual(['one__f32'])
  await expect(library.ensure(['bad__f32'])).rejects.toMatchObject({ code: 'build.compile' })
})

test('a call that is cancelled does not end the compiler of another', async () => {
  const cancelled = new AbortController()
  const first = library.ensure(['one__f32'], { signal: cancelled.signal })
  const second = library.ensure(['one__f32'])
  cancelled.abort(new Error('not wanted any more'))
  await expect(first).rejects.toThrow('not wanted any more')
  await second
  expect(library.of('one__f32').kernels.map(({ key }) => key)).toEqual(['one__f32'])
})
