/** `heddle export` of several programs: names in C, sizes and attributes by program, and refusals. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { heddleIn } from '../verify/own_project.js'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heddle-library-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const norms = (...argv: string[]) => heddleIn(folder, 'export', 'rms_norm', 'layer_norm', '--out', 'norms', ...argv)

it('is called by the folder, its programs by their names, and by their types if there are two', async () => {
  const one = await norms('--json')
  expect(one.code, one.log).toBe(0)
  const prefixes = (out: string) => JSON.parse(out).programs.map(({ prefix }: { prefix: string }) => prefix)
  expect(prefixes(one.out)).toEqual(['rms_norm', 'layer_norm'])
  const two = await norms('--json', '--dtype', 'f32,f16', '--library', 'several')
  expect(JSON.parse(two.out).name).toBe('several')
  expect(prefixes(two.out)).toEqual(['rms_norm_f32', 'rms_norm_f16', 'layer_norm_f32', 'layer_norm_f16'])
  const cmake = await readFile(join(folder, 'norms/CMakeLists.txt'), 'utf8')
  expect(cmake).toContain('add_library(several SHARED ')
  expect(cmake.match(/src\/export\/program\.cpp/g)).toHaveLength(1)
  expect(await readFile(join(folder, 'norms/rms_norm_f16_torch.py'), 'utf8')).toContain('"libseveral.so"')
  expect(await readFile(join(folder, 'norms/include/several.h'), 'utf8')).toContain('#include "layer_norm_f16.h"')
})

it('takes sizes of any program, attributes and plans by name', async () => {
  const { out, log } = await norms('--json', '--dims', 'n=64', '--attrs', '{ "rms_norm": { "eps": 0.5 } }')
  expect(
    JSON.parse(out).programs.map(({ fixed }: { fixed: object }) => fixed),
    log,
  ).toEqual([{ n: 64 }, { n: 64 }])
  expect(await readFile(join(folder, 'norms/src/rms_norm.cpp'), 'utf8')).toContain('{0.5, 0.0}')
  expect(await readFile(join(folder, 'norms/src/layer_norm.cpp'), 'utf8')).not.toContain('{0.5, 0.0}')
})

it.each([
  ['export.name', 'choose another with --library', ['--library', 'rms_norm']],
  ['export.model', 'one program per folder with --model', ['--model', 'DIR']],
  ['export.dims', 'none of rms_norm, layer_norm has a dimension z', ['--dims', 'z=3']],
  ['export.attrs', 'expected objects by name, got eps', ['--attrs', '{ "eps": 1 }']],
  ['export.config', 'expected objects by name, got layers', ['--config', '{ "layers": 1 }']],
  ['cli.usage', 'Expected storage types', ['--dtype', 'f33']],
])('refuses with %s: %s', async (code, text, argv) => {
  const { code: exit, log } = await norms(...argv)
  expect([exit, log]).toEqual([2, expect.stringContaining(text)])
  expect(log).toContain(code)
})
