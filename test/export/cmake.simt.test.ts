/** `find_package(heddle)`: two graphs in two storage types are one library, and an edited op compiles one file. */
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type CmakeProject, cmakeProject, compiledIn } from './cmake_project.js'

let project: CmakeProject
let specs = ''
beforeAll(async () => {
  project = await cmakeProject()
  specs = join(project.folder, 'specs/index.ts')
})
afterAll(() => rm(project.folder, { recursive: true, force: true }))

const edited = async (from: string, to: string): Promise<void> => {
  const text = await readFile(specs, 'utf8')
  expect(text).toContain(from)
  await writeFile(specs, text.replace(from, to))
}

const kernels = ['halved.cu', 'scaled_shifted__f16.cu', 'scaled_shifted__f32.cu', 'squared__f16.cu', 'squared__f32.cu']

it('builds, links and runs; an edited op compiles one file, a wrong one says where', async () => {
  // Kernels and the matmuls have flags of their own; the rest runs once.
  const configured = await project.configure('-DHEDDLE_DEVICE=simt', '-DCMAKE_CXX_FLAGS_RELEASE=-O0')
  expect(configured.code, configured.output).toBe(0)
  const first = await project.build()
  expect(first.code, first.output).toBe(0)
  expect(compiledIn(first).filter((file) => file.endsWith('.cu'))).toEqual(kernels)
  expect(await project.app()).toEqual({ code: 0, output: 'affine f32 7\naffine f16 4700\nenergy f32 4.5\nenergy f16 4.5\n' })

  expect(compiledIn(await project.build())).toEqual([])
  await edited('* 0.5', '* 0.25')
  expect(compiledIn(await project.build())).toEqual(['halved.cu'])
  expect((await project.app()).output).toContain('energy f32 2.25\n')

  await edited('i.gamma(c) })', 'i.gamma(c, c) })')
  const wrong = await project.build()
  expect(wrong.code).not.toBe(0)
  expect(wrong.output).toMatch(/specs\/index\.ts:\d+:\d+.*\n(.*\n)*.*heddle gen ended with 2/)
})
