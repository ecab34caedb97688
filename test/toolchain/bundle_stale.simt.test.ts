/** A bundle packs a complete build: a build from other sources than the present ones is refused, a current one is packed. */
import { rm } from 'node:fs/promises'
import { afterEach, expect, test, vi } from 'vitest'
import { buildKernels, makeBundle } from '../../src/toolchain/index.js'
import { type TestProject, testProject } from './project.js'

let project: TestProject

afterEach(async () => {
  vi.unstubAllEnvs()
  await rm(project.root, { recursive: true, force: true })
})

const code = async (): Promise<unknown> =>
  makeBundle({ root: project.root }).then(undefined, (error: { code: unknown }) => error.code)

test('sources that changed after a build are not packed', async () => {
  project = await testProject({ one: 'int one() { return 1; }\n' })
  await buildKernels({ target: 'simt', root: project.root })
  // The twin: the same build with its own sources is packed, up to the addon, which this project lacks.
  expect(await code()).toBe('bundle.missing')

  await project.write('generated/cuda/one.cu', 'int one() { return 2; }\n')
  await expect(makeBundle({ root: project.root })).rejects.toMatchObject({
    code: 'bundle.stale',
    message: expect.stringContaining('libheddle_kernels.so was not built from the source in '),
    hint: 'run heddle build --target simt',
  })
  await buildKernels({ target: 'simt', root: project.root })
  expect(await code()).toBe('bundle.missing')
})

test('a manifest that changed after a build is not packed', async () => {
  project = await testProject({ one: 'int one() { return 1; }\n' })
  await buildKernels({ target: 'simt', root: project.root })
  await project.write('generated/manifest.json', JSON.stringify({ version: 1, kernels: [] }))
  expect(await code()).toBe('bundle.stale')
})
