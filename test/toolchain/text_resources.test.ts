/** Origin of kernel resources: the record, nvcc, or none; and sources that launch with dynamic shared memory. */
import { readdirSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { checkTexts } from '../../src/toolchain/check_texts.js'
import { cacheFolder } from '../../src/toolchain/index.js'
import { readManifestOf } from '../../src/toolchain/manifests.js'
import { packageRoot } from '../../src/toolchain/paths.js'
import { resourcesOf } from '../../src/toolchain/text_resources.js'
import { projectWithNvcc } from './fake_nvcc.js'

let root: string
afterEach(async () => {
  vi.unstubAllEnvs()
  await rm(root, { recursive: true, force: true })
})

test('come from the record if it knows the unchanged source, else from nvcc if allowed, else are unknown', async () => {
  const spun = 'int a__f16;\n// SPILL\n'
  const { project, generated, install } = await projectWithNvcc({ a__f16: 'int a__f16;\n', b__f16: 'WRONG\n' })
  root = project.root
  const { kernels: entries } = await readManifestOf(generated)
  const ask = (compile: boolean) =>
    resourcesOf(
      entries.map((entry) => ({ entry, folder: generated })),
      { root, compile },
    )
  const kernel = { kernel: 'spin', threads: 96, registers: 32, sharedBytes: 16, spillStoreBytes: 0 }
  await checkTexts({ generated, record: true, filter: /^a/ })
  vi.stubEnv('HEDDLE_NVCC', join(root, 'none'))
  expect(await ask(true)).toMatchObject([
    {
      from: 'record',
      kernels: [
        { ...kernel, arch: 'sm_80' },
        { ...kernel, arch: 'sm_90' },
      ],
      dynamicShared: false,
    },
    { from: 'unknown', detail: expect.stringContaining('no nvcc'), kernels: [] },
  ])

  await project.write('generated/cuda/a__f16.cu', spun)
  expect(await ask(true)).toMatchObject([{ from: 'unknown' }, { from: 'unknown' }])
  await install()
  expect(await ask(false)).toMatchObject([{ from: 'unknown', detail: expect.stringContaining('has not been compiled') }, {}])
  // A page shows what a build refuses.
  const asked = [
    {
      from: 'nvcc',
      kernels: [
        { ...kernel, arch: 'sm_90a' },
        { ...kernel, arch: 'sm_80', spillStoreBytes: 8 },
      ],
    },
    { from: 'unknown', detail: expect.stringContaining('refuses b__f16.cu') },
  ]
  expect(await ask(true)).toMatchObject(asked)
  expect(await ask(false)).toMatchObject(asked.slice(0, 1).concat({ from: 'unknown', detail: expect.any(String) }))
  await rm(join(cacheFolder(), 'objects'), { recursive: true })
  expect(await ask(false)).toMatchObject([{ from: 'unknown' }, { from: 'unknown' }])
})

test('one header declares dynamic shared memory for all that use it', () => {
  root = ''
  const folder = join(packageRoot(), 'native/device')
  const saying = (what: string) => readdirSync(folder).filter((name) => readFileSync(join(folder, name), 'utf8').includes(what))
  expect(saying('extern __shared__')).toEqual(['mma.cuh'])
})
