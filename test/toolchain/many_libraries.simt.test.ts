/** Many kernel libraries in one process, as a project that compiles on demand loads them. */
import { copyFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test, vi } from 'vitest'
import { download, upload } from '../../src/runtime/buffer.js'
import { openDevice } from '../../src/runtime/device.js'
import { demandKernels, searchManifests } from '../../src/toolchain/index.js'
import { type TestProject, testProject } from './project.js'

const shipped = fileURLToPath(new URL('../..', import.meta.url))
/** More libraries than fit into a process's reserve of thread-local storage for libraries opened at run time. */
const count = 120

let project: TestProject
afterAll(async () => {
  vi.unstubAllEnvs()
  await rm(project.root, { recursive: true, force: true })
})

test(`${count} libraries are loaded and run`, async () => {
  project = await testProject({})
  const { manifest, folderOf } = await searchManifests(shipped)
  const kernels = manifest.kernels.flatMap((entry) => (entry.key === 'add__f32' ? [{ entry, folder: folderOf(entry.key) }] : []))
  const { library } = await demandKernels(kernels, { root: project.root, target: 'simt' })
  const device = openDevice('simt')
  try {
    const bytes = 4 * 1000
    const buffer = device.allocate(2 * bytes)
    const at = (offset: number) => ({ buffer, offset, bytes })
    await upload(buffer, 0, 'f32', new Float32Array(1000).fill(1))
    await upload(buffer, bytes, 'f32', new Float32Array(1000))
    for (let i = 0; i < count; i++) {
      const copy = join(project.root, `library${i}.so`)
      await copyFile(library, copy)
      const step = {
        kind: 'kernel' as const,
        label: 'add',
        library: device.loadLibrary(copy),
        key: 'add__f32',
        buffers: [at(0), at(bytes), at(bytes)],
        dims: [10, 100],
        attrs: [],
      }
      await device.program([step]).run([], [])
    }
    expect(await download(buffer, bytes, 'f32', 1000)).toEqual(new Float32Array(1000).fill(count))
  } finally {
    device.close()
  }
})
