/** Fixture kernels through nvcc: no warnings, no spills, bounded registers, and vector accesses that are really there. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { generate } from '../../src/emit/generate.js'
import { writeGenerated } from '../../src/emit/write.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { buildKernels, cacheFolder } from '../../src/toolchain/index.js'
import { readSources } from '../../src/toolchain/kernels.js'
import { compileFiles } from '../../src/toolchain/objects.js'
import { recipeFor } from '../../src/toolchain/recipe.js'
import { keyFiles } from '../../src/toolchain/sources.js'
import * as fixtures from '../schedule/fixtures.js'
import { inTurn } from '../turns.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const run = promisify(execFile)
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heddle-nvcc-'))
})
afterAll(() => rm(folder, { recursive: true }))

const halves = fixtures.everything.map((kernel) => ({
  ...kernel,
  types: Object.hasOwn(kernel.types, 'T') ? { T: ['f16' as const] } : {},
}))
const floats = [fixtures.layerNorm, fixtures.fourRows].map((kernel) => ({
  ...kernel,
  types: { T: ['f32' as const, 'bf16' as const] },
}))

/** Resources of those of the kernels that are compiled, as machine code: launchers are the host's, which `simt` compiles. */
async function resourcesOf(name: string, kernels: readonly Kernel[], compiled: readonly Kernel[]) {
  const generated = join(folder, name)
  await writeGenerated(generated, generate(kernels))
  const names = new Set(compiled.map((kernel) => kernel.name))
  const recipe = await recipeFor('cuda', root, { architecture: '80', codeOnly: true })
  const { files } = await readSources(generated)
  const texts = await keyFiles(
    recipe,
    files.filter(({ op }) => op !== undefined && names.has(op)),
  )
  const objects = await compileFiles(recipe, texts, { cache: cacheFolder(), together: 'headers' })
  return objects.flatMap(({ resources }) => resources)
}

const includes = ['native/include', 'native/device'].flatMap((path) => ['-I', join(root, path)])

async function ptxOf(key: string): Promise<string> {
  const ptx = join(folder, `${key}.ptx`)
  await run('nvcc', ['-ptx', '-arch=sm_90', '-std=c++17', ...includes, '-o', ptx, join(folder, 'generated/cuda', `${key}.cu`)])
  return readFile(ptx, 'utf8')
}

describe('nvcc', () => {
  it('builds every shape of program without warnings or spills', async () => {
    const made = await resourcesOf('generated', halves, inTurn(halves))
    expect(made.length).toBeGreaterThan(15)
    expect(Math.max(...made.map(({ registers }) => registers))).toBeLessThanOrEqual(128)
    const wide = await resourcesOf('floats', floats, floats)
    expect(Math.max(...wide.map(({ registers }) => registers))).toBeLessThanOrEqual(128)
  })

  it('keeps NaN in a maximum without an extra instruction', async () => {
    const softmax = await ptxOf('softmax__f16')
    expect(softmax).toContain('max.NaN.f32')
    expect(softmax).not.toContain('max.f32')
  })

  it('moves whole chunks with 16-byte instructions, those of a transpose through shared memory', async () => {
    const gelu = await ptxOf('gelu__f16')
    expect(gelu).toContain('ld.global.v4')
    expect(gelu).toContain('st.global.v4')
    expect(gelu).toContain('cvt.rn.f16x2.f32')
    const transpose = await ptxOf('transpose__f16')
    for (const moved of ['ld.global.v4', 'st.shared', 'st.global.v4']) expect(transpose).toContain(moved)
  })

  it('uses the read-only path only for constants', async () => {
    const [kernel] = halves.filter(({ name }) => name === fixtures.layerNorm.name)
    if (kernel === undefined) throw new Error('no layer norm')
    const generated = join(folder, 'generated')
    const loads = async (constant: readonly string[]) => {
      const tensors = kernel.tensors.map((t) => (constant.includes(t.name) ? { ...t, constant: true as const } : t))
      await writeGenerated(generated, generate([{ ...kernel, name: 'constants', tensors }]))
      const ptx = await ptxOf('constants__f16')
      return { plain: ptx.includes('ld.global.v4'), readOnly: ptx.includes('ld.global.nc') }
    }
    expect(await loads([])).toEqual({ plain: true, readOnly: false })
    expect(await loads(['gamma', 'beta'])).toEqual({ plain: true, readOnly: true })
  })

  it('turns a warning into a failure', async () => {
    const files = new Map(generate([{ ...fixtures.transpose, types: { T: ['f32'] } }]))
    const path = 'cuda/transpose__f32.cu'
    files.set(path, `${files.get(path)}\n__global__ void unused_variable() { int x = 3; }\n`)
    await writeGenerated(join(folder, 'broken'), files)
    await expect(
      buildKernels({ target: 'cuda', root, generated: join(folder, 'broken'), outDir: join(folder, 'none') }),
    ).rejects.toThrow(/was declared but never referenced|build/)
  })
})
