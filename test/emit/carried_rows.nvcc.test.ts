/** Folds that carry rows through nvcc, as machine code of an H200: no warnings, no spills, no local memory, and one barrier of the lanes per step. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { generate } from '../../src/emit/generate.js'
import { writeGenerated } from '../../src/emit/write.js'
import { openProject, readProject } from '../../src/frontend/index.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const run = promisify(execFile)
const includes = ['native/include', 'native/device'].flatMap((path) => ['-I', join(root, path)])
const ops = ['correct_sequence', 'crossed_rows', 'rwkv_sequence']
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heddle-nvcc-'))
  const text = await readFile(join(root, 'test/projects/memory/specs/rules.ts'), 'utf8')
  const { kernels } = readProject(openProject(root), [], { 'specs/memory/rules.ts': text })
  expect(kernels.map(({ name }) => name)).toEqual(ops)
  await writeGenerated(folder, generate(kernels))
})
afterAll(() => rm(folder, { recursive: true }))

async function compiled(name: string, file = join(folder, 'cuda', `${name}.cu`)): Promise<{ said: string; ptx: string }> {
  const to = join(folder, name)
  const flags = ['-arch=sm_90', '-std=c++17', '-Werror', 'all-warnings', ...includes]
  const { stderr } = await run('nvcc', ['-cubin', '-Xptxas', '-v', ...flags, '-o', `${to}.cubin`, file])
  await run('nvcc', ['-ptx', ...flags, '-o', `${to}.ptx`, file])
  return { said: stderr, ptx: await readFile(`${to}.ptx`, 'utf8') }
}

const meetings = (ptx: string): number => ptx.split('bar.warp.sync').length - 1

describe('nvcc', () => {
  for (const name of ops)
    it(`builds ${name} of every storage type without warnings or spills`, async () => {
      for (const dtype of ['f32', 'f16', 'bf16']) {
        const { said, ptx } = await compiled(`${name}__${dtype}`)
        expect(said).toContain('0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads')
        expect(meetings(ptx)).toBeGreaterThan(0)
      }
    })

  it('finds lanes without a barrier when the source has none', async () => {
    const name = 'correct_sequence__f32'
    const text = await readFile(join(folder, 'cuda', `${name}.cu`), 'utf8')
    const file = join(folder, 'apart.cu')
    await writeFile(file, text.replaceAll('team.meet();', ''))
    expect(meetings((await compiled('apart', file)).ptx)).toBe(0)
  })
})
