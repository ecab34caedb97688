/** Requests of a check to nvcc, and the handling of its output: with a stand-in for nvcc, since only its messages matter. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { describeGpu } from '../../src/cli/check.js'
import { readManifestOf } from '../../src/toolchain/manifests.js'
import { compileForGpu, mostSources } from '../../src/verify/check/gpu_sources.js'
import { projectWithNvcc } from '../toolchain/fake_nvcc.js'

let root: string | undefined

async function asked(texts: Readonly<Record<string, string>>, build: 'brief' | 'all') {
  const { project, generated } = await projectWithNvcc(texts)
  root = project.root
  const manifest = await readManifestOf(generated)
  return compileForGpu(manifest.kernels, { searched: { manifest, folderOf: () => generated, hidden: [] } }, build)
}

afterEach(async () => {
  vi.unstubAllEnvs()
  if (root !== undefined) await rm(root, { recursive: true, force: true })
  root = undefined
})

const sources = (ops: number, types: readonly string[] = ['f16', 'f32']) =>
  Object.fromEntries(
    Array.from({ length: ops }, (_, op) => types.map((type) => [`op${op}__${type}`, `int op${op}__${type};\n`])).flat(),
  )

describe('a check on the CPU device', () => {
  it('compiles one source of each op, and all on request', async () => {
    expect(await asked(sources(3), 'brief')).toMatchObject({ compiled: 3, sources: 6, findings: [] })
    vi.unstubAllEnvs()
    expect(await asked(sources(3), 'all')).toMatchObject({ compiled: 6, sources: 6, findings: [] })
  })

  it('limits the number of ops, except on request for all', async () => {
    const report = await asked(sources(mostSources + 6, ['f32']), 'brief')
    expect(report).toMatchObject({ compiled: mostSources, sources: mostSources + 6 })
    expect(report && describeGpu(report)).toContain(`--nvcc compiles all ${mostSources + 6}`)
  })

  it('finds errors of nvcc', async () => {
    const report = await asked({ ...sources(1), wrong__f32: 'WRONG\n' }, 'all')
    expect(report?.findings.join()).toContain('op wrong: nvcc refused')
    expect(report && describeGpu(report)).toContain('FAIL nvcc')
  })

  it('is silent without nvcc, unless all are requested', async () => {
    await asked(sources(1), 'brief')
    vi.stubEnv('HEDDLE_NVCC', join(root ?? '', 'none'))
    const searched = { manifest: { version: 1 as const, kernels: [] }, folderOf: () => '', hidden: [] }
    expect(await compileForGpu([], { searched }, 'brief')).toBeUndefined()
    await expect(compileForGpu([], { searched }, 'all')).rejects.toThrow('nvcc was not found')
  })
})
