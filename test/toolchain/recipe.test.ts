/** Architectures and flags of a CUDA file: by the headers it reaches and the purpose of the build. */
import { rm } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { headerDigests } from '../../src/toolchain/includes.js'
import { recipeFor } from '../../src/toolchain/recipe.js'
import { type TestProject, testProject } from './project.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
let project: TestProject

beforeAll(async () => {
  project = await testProject({})
  vi.stubEnv('HEDDLE_NVCC', await project.script('nvcc', 'echo "fake 1.0, release 1"'))
})
afterAll(async () => {
  vi.unstubAllEnvs()
  await rm(project.root, { recursive: true })
})

const codesOf = (flags: readonly string[]): string[] => flags.filter((_, i) => flags[i - 1] === '-gencode')

describe('the level of optimisation for the CPU device', () => {
  const level = async (options = {}) =>
    (await recipeFor('simt', root, options)).compileFlags([]).filter((flag) => /^-O/.test(flag))

  it('is -O1, that of the environment, or that of the caller', async () => {
    vi.stubEnv('HEDDLE_SIMT_OPTIMISE', undefined)
    expect(await level()).toEqual(['-O1'])
    vi.stubEnv('HEDDLE_SIMT_OPTIMISE', '-Og')
    expect(await level()).toEqual(['-Og'])
    expect(await level({ optimise: '-O0' })).toEqual(['-O0'])
    vi.stubEnv('HEDDLE_SIMT_OPTIMISE', '-O9')
    await expect(level()).rejects.toMatchObject({ code: 'toolchain.optimise', hint: 'give one of -O0, -Og, -O1' })
    vi.stubEnv('HEDDLE_SIMT_OPTIMISE', '')
    expect(await level()).toEqual(['-O1'])
  })
})

describe('flags of a CUDA file', () => {
  it('name 90a if the source reaches instructions of 90a', async () => {
    const recipe = await recipeFor('cuda', root)
    const rows = await headerDigests('#include "kernel.cuh"', recipe.include)
    expect(codesOf(recipe.compileFlags(Object.keys(rows)))).toEqual([
      'arch=compute_80,code=sm_80',
      'arch=compute_90,code=[sm_90,compute_90]',
    ])
    for (const header of ['matmul.cuh', 'matmul_int8.cuh', 'attention.cuh']) {
      const reached = await headerDigests(`#include "${header}"`, recipe.include)
      expect(codesOf(recipe.compileFlags(Object.keys(reached))), header).toContain('arch=compute_90a,code=sm_90a')
    }
  })

  it('include line numbers only on request', async () => {
    expect((await recipeFor('cuda', root)).compileFlags([])).not.toContain('-lineinfo')
    expect((await recipeFor('cuda', root, { lineInfo: true })).compileFlags([])).toContain('-lineinfo')
  })

  it('have one architecture if a library is for one device', async () => {
    const recipe = await recipeFor('cuda', root, { architecture: '90' })
    expect(codesOf(recipe.compileFlags(['kernel.cuh']))).toEqual(['arch=compute_90a,code=sm_90a'])
    const several = await recipeFor('cuda', root, { architecture: '89,90,120' })
    expect(codesOf(several.compileFlags(['kernel.cuh']))).toEqual([
      'arch=compute_89,code=sm_89',
      'arch=compute_90a,code=sm_90a',
      'arch=compute_120,code=sm_120',
    ])
    await expect(recipeFor('cuda', root, { architecture: '70' })).rejects.toMatchObject({ code: 'toolchain.architecture' })
  })
})
