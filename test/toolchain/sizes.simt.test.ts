/** Sizes of compiled kernels: the loaded sections of an object, and a limit. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findCxx } from '../../src/toolchain/index.js'
import { objectSize, refuseLarge, sizesOf } from '../../src/toolchain/sizes.js'
import { heddle } from '../cli/host.js'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heddle-sizes-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

async function compiled(name: string, source: string): Promise<string> {
  const { path } = (await findCxx()) ?? expect.fail('no compiler')
  const object = join(folder, `${name}.o`)
  await writeFile(join(folder, `${name}.cpp`), source)
  await promisify(execFile)(path, ['-g', '-c', join(folder, `${name}.cpp`), '-o', object])
  return object
}

const table = (bytes: number): string => `extern const char table[${bytes}]; const char table[${bytes}] = {1};`

describe('the size of an object', () => {
  it('is that of what a process loads: constants and GPU code, neither debugging data nor zeros', async () => {
    const [small, large] = [await compiled('small', table(1000)), await compiled('large', table(5000))]
    const sizes = await Promise.all([small, large].map(async (path) => objectSize(await readFile(path))))
    expect((sizes[1]?.bytes ?? 0) - (sizes[0]?.bytes ?? 0)).toBe(4000)
    const zeros = await compiled('zeros', 'char zeros[100000];')
    expect(objectSize(await readFile(zeros)).bytes).toBeLessThan(1000)
    const gpu = await compiled('gpu', `__attribute__((section(".nv_fatbin"), used)) ${table(3000).replace(/^.*?; /, '')}`)
    expect(objectSize(await readFile(gpu)).gpuBytes).toBe(3000)
    expect(() => objectSize(new Uint8Array(64))).toThrow('not an object')
  })

  it('counts once for the files of a unit; the registry is no kernel; the limit names what is above it', async () => {
    const object = await compiled('unit', table(5000))
    const sizes = await sizesOf([
      { source: 'b.cu', object, op: 'op' },
      { source: 'a.cu', object, op: 'op' },
      { source: 'registry.cpp', object: 'none', op: undefined },
    ])
    expect(sizes).toMatchObject([{ sources: ['a.cu', 'b.cu'], gpuBytes: 0 }])
    expect(() => refuseLarge(sizes, 6000)).not.toThrow()
    expect(() => refuseLarge(sizes, 4000)).toThrow(
      expect.objectContaining({
        code: 'build.size',
        message: expect.stringMatching(/^a\.cu, b\.cu: expected at most 4000 bytes/),
      }),
    )
  })
})

it('heddle build prints sizes, and exits 1 above the limit', async () => {
  const argv = ['build', '--target', 'simt', '--filter', '^softmax__f32$', '--sizes']
  const { exitCode, log } = await heddle(argv)
  expect([exitCode, log]).toEqual([0, expect.stringMatching(/\d+\.\d kB {2}cuda\/softmax__f32\.cu\n +\d+\.\d kB {2}simt: all\n/)])
  const refused = await heddle([...argv, '--limit-kb', '1'])
  expect([refused.exitCode, refused.log]).toEqual([1, expect.stringContaining('build.size')])
})
