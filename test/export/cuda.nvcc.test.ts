/** An export built for CUDA as its users build it. Without a GPU its program reports that one is missing; its results are tested with one. */
import { rm } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { cmakeProject, compiledIn } from './cmake_project.js'

it('of a CMake project has two graphs, two storage types and two architectures, and links with everything it needs', async () => {
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
