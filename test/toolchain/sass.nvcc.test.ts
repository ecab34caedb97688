/** Machine code of generated kernels: nothing that may change is loaded, and no launch released, before a kernel has waited. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { threadsOf } from '../../src/toolchain/cubin.js'
import { earlyAccesses, kernelsOf } from '../../src/toolchain/sass.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const run = promisify(execFile)
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heddle-sass-'))
})
afterAll(() => rm(folder, { recursive: true }))

/** Waits exist from sm_90 on; bodies for Hopper want its full set of instructions. */
async function cubinOf(source: string, name: string): Promise<Uint8Array> {
  const cubin = join(folder, `${name}.cubin`)
  const includes = ['native/include', 'native/device'].flatMap((path) => ['-I', join(root, path)])
  const code = ['-gencode', 'arch=compute_90a,code=sm_90a']
  await run('nvcc', ['-cubin', '-std=c++17', '-O3', ...code, ...includes, '-o', cubin, source])
  return readFile(cubin)
}

/** A kernel of custom source between a wait and a store. */
async function written(name: string, body: string): Promise<Uint8Array> {
  const source = join(folder, `${name}.cu`)
  const parameters = 'const heddle::In<float> x, const heddle::ConstantIn<float> w, const heddle::Out<float> y'
  await writeFile(
    source,
    `#include "kernel.cuh"\n__global__ void ${name}(${parameters}) {\n  const int i = threadIdx.x;\n${body}\n}\n`,
  )
  return cubinOf(source, name)
}

/** A row kernel and a matmul for Hopper: `heddle build --check` examines the machine code of every source that it compiles. */
const shipped = ['bias_residual_layer_norm__f16', 'matmul_bias_gelu__f16']

describe('machine code', () => {
  it.each(shipped)('of %s waits before it loads or releases', async (key) => {
    const cubin = await cubinOf(join(root, 'generated/cuda', `${key}.cu`), key)
    expect(kernelsOf(cubin).length).toBeGreaterThan(0)
    // Every kernel states its launch bounds, which occupancies are computed from.
    expect(threadsOf(cubin).size).toBe(kernelsOf(cubin).length)
    expect([...threadsOf(cubin).values()].every((threads) => threads % 32 === 0 && threads <= 1024)).toBe(true)
    expect(earlyAccesses(cubin)).toEqual([])
  })

  it('may load constants before it waits', async () => {
    const cubin = await written(
      'early_weight',
      '  const float a = w.get(i);\n  heddle::begin_kernel();\n  y.set(i, a + x.get(i));',
    )
    expect(kernelsOf(cubin)).toEqual([expect.stringContaining('early_weight')])
    expect(earlyAccesses(cubin)).toEqual([])
  })

  it.each([
    [
      'early_input',
      '  const float a = x.get(i);\n  heddle::begin_kernel();\n  y.set(i, a + w.get(i));',
      'loads memory that may change',
    ],
    [
      'early_packs',
      '  const auto a = x.get_pack<4>(4 * i);\n  heddle::begin_kernel();\n  y.set_pack<4>(4 * i, a);',
      'loads memory that may change',
    ],
    [
      'early_release',
      '  heddle::release_consumers();\n  heddle::wait_for_producers();\n  y.set(i, x.get(i));',
      'lets the next launch start',
    ],
    ['no_wait', '  y.set(i, w.get(i));', 'never waits'],
  ])('is refused: %s', async (name, body, fault) => {
    expect(earlyAccesses(await written(name, body))).toEqual([
      { kernel: expect.stringContaining(name), fault: expect.stringContaining(fault) },
    ])
  })
})
