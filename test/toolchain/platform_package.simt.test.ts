/** The platform package on a machine with Node alone: the addon loads from it and its kernels run; other kernels need a compiler. */
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { packageRoot, searchManifests, writePackages } from '../../src/toolchain/index.js'
import { platformManifest, platformName } from '../../src/toolchain/platform_package.js'
import { ran } from '../export/cmake_project.js'

let work = ''
beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), 'heddle-platform-'))
  for (const name of ['empty', 'bin', 'home']) await mkdir(join(work, name))
  await symlink(process.execPath, join(work, 'bin/node'))
  const { manifest, folderOf } = await searchManifests(packageRoot())
  const kernels = manifest.kernels
    .filter(({ key }) => key === 'softmax__f32')
    .map((entry) => ({ entry, folder: folderOf(entry.key) }))
  await writePackages({ out: join(work, 'modules', dirname(platformName())), kernels, whole: false })
})
afterAll(() => rm(work, { recursive: true, force: true }))

/** Calls a shipped op in an empty folder, with Node alone on the path and an empty cache. */
async function calls(op: string, inputs: string, modules = 'modules') {
  const dist = join(packageRoot(), 'dist')
  const script = `import { openDevice, tensor } from '${dist}/runtime.js'
import * as ops from '${dist}/specs/ops/${op}.js'
const device = await openDevice('simt')
const { y } = await device.call(Object.values(ops).find(({ name }) => name === '${op}'), { ${inputs} })
console.log([...y.data].join(' '))
await device.close()
`
  await writeFile(join(work, 'empty/main.mjs'), script)
  const env = { PATH: join(work, 'bin'), HOME: join(work, 'home'), NODE_PATH: join(work, modules) }
  return ran(process.execPath, [join(work, 'empty/main.mjs')], env)
}

const x = "x: tensor('f32', [1, 2], [3, 3])"

it('runs its kernels without a compiler', async () => {
  expect(await calls('softmax', x)).toEqual({ code: 0, output: '0.5 0.5\n' })
})

it('has no other kernels, and without it there is no addon', async () => {
  const other = await calls('rms_norm', `${x}, gamma: tensor('f32', [2], [1, 1])`)
  expect([other.code, other.output]).toEqual([1, expect.stringContaining('toolchain.cxx')])
  const none = await calls('softmax', x, 'nowhere')
  expect([none.code, none.output]).toEqual([1, expect.stringContaining('toolchain.cxx')])
})

it('of another version is not used', async () => {
  const path = join(work, 'modules', platformName(), 'package.json')
  await writeFile(path, (await platformManifest()).replace(/"version": "[^"]*"/, '"version": "9.9.9"'))
  expect((await calls('softmax', x)).output).toContain('toolchain.cxx')
})

it('says for what it is, and is published with provenance', async () => {
  const { os, cpu, libc, publishConfig, scripts } = JSON.parse(await platformManifest())
  expect([os, cpu, libc]).toEqual([[process.platform], [process.arch], ['glibc']])
  expect([publishConfig, scripts]).toEqual([{ access: 'public', provenance: true }, undefined])
})

it('names the repository that heddle names', async () => {
  const repository = { type: 'git', url: 'git+https://example.org/heddle.git' }
  await writeFile(join(work, 'package.json'), JSON.stringify({ license: 'MIT', version: '1.0.0', repository }))
  expect(JSON.parse(await platformManifest(work))).toMatchObject({ repository, version: '1.0.0' })
  expect(JSON.parse(await platformManifest())).not.toHaveProperty('repository')
})
