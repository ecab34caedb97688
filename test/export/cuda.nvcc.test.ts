/** An export built for CUDA as its users build it. Without a GPU its example reports that one is missing; its results are tested with one. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { heddle } from '../cli/host.js'
import { builtByCmake, f32 } from './built.js'
import { cmakeProject, compiledIn } from './cmake_project.js'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heddle-export-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

it('links with everything the library needs', async () => {
  const { exitCode, log } = await heddle(['export', 'rms_norm', '--out', folder, '--target', 'cuda'])
  expect(exitCode, log).toBe(0)
  const built = await builtByCmake(folder, 'cuda')
  const [m, n] = [2, 8]
  const inputs = { x: f32([m, n], new Array(m * n).fill(3)), gamma: f32([n], new Array(n).fill(1)) }
  const outcome = await built.run({}, inputs, { m, n }).catch((error: Error) => error.message)
  if (typeof outcome === 'string') expect(outcome).toMatch(/status \d+: .*(driver|device)/)
  else expect(outcome.y?.shape).toEqual([m, n])
})

it('of a CMake project has two graphs, two storage types and two architectures', async () => {
  const project = await cmakeProject()
  try {
    const configured = await project.configure()
    expect(configured.code, configured.output).toBe(0)
    const built = await project.build()
    expect(built.code, built.output).toBe(0)
    expect(compiledIn(built)).toContain('scaled_shifted__f16.cu')
    const { output } = await project.app()
    expect(output).toMatch(/status \d+: .*(driver|device)|affine f32 7\naffine f16 4700\nenergy f32 4.5/)
  } finally {
    await rm(project.folder, { recursive: true, force: true })
  }
})
