import { existsSync } from 'node:fs'
import { cp, readdir, readFile, rm, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { buildKernels, libraryState, outputs } from '../../src/toolchain/index.js'
import { type TestProject, testProject } from './project.js'

let project: TestProject

afterEach(async () => {
  vi.unstubAllEnvs()
  await rm(project.root, { recursive: true, force: true })
})

const build = () => buildKernels({ target: 'simt', root: project.root })

test('compiles once, and again only files with changed content', async () => {
  project = await testProject({ one: 'int one() { return 1; }\n', two: 'int two() { return 2; }\n' })
  expect(await build()).toMatchObject({ compiled: 3, linked: true })
  expect(await build()).toMatchObject({ compiled: 0, linked: false })

  const now = new Date()
  await utimes(join(project.root, 'generated/cuda/one.cu'), now, now)
  expect(await build()).toMatchObject({ compiled: 0, linked: false })

  await project.write('generated/cuda/one.cu', 'int one() { return 3; }\n')
  expect(await build()).toMatchObject({ compiled: 1, linked: true })
})

test('projects that share a cache compile a source once, and another source of its name again', async () => {
  const one = await testProject({ one: 'int one() { return 1; }\n' })
  project = await testProject({ one: 'int one() { return 1; }\n' })
  vi.stubEnv('HEDDLE_CACHE', join(one.root, 'shared'))
  // Files that one user wrote, in both projects.
  await cp(join(project.root, 'cache', 'own'), join(one.root, 'shared', 'own'), { recursive: true })
  expect(await buildKernels({ target: 'simt', root: one.root })).toMatchObject({ compiled: 2, linked: true })
  expect(await build()).toMatchObject({ compiled: 0, linked: true })
  expect(existsSync(join(project.root, '.heddle/cache'))).toBe(false)
  await project.write('generated/cuda/one.cu', 'int one() { return 2; }\n')
  expect(await build()).toMatchObject({ compiled: 1, linked: true })
  await rm(one.root, { recursive: true })
})

test('a header next to a source is not mistaken for the package’s', async () => {
  project = await testProject({ one: '#include "kernel.cuh"\nint one() { return 1; }\n' })
  await project.write('generated/cuda/kernel.cuh', '#error planted\n')
  expect(await build()).toMatchObject({ compiled: 2 })
})

test('a library that this user did not link is linked again, whatever its report states', async () => {
  project = await testProject({ one: 'int one() { return 1; }\n' })
  const { report } = await build()
  expect(await build()).toMatchObject({ compiled: 0, linked: false })
  await rm(join(project.root, 'cache/own', report.library.digest))
  expect(await libraryState(project.root, 'simt')).toBe('stale')
  expect(await build()).toMatchObject({ compiled: 0, linked: true })
  expect(await libraryState(project.root, 'simt')).toBe('current')
})

test('a removed or altered library is linked again', async () => {
  project = await testProject({ one: 'int one() { return 1; }\n' })
  const { library, report } = await build()
  await project.write('.heddle/simt/libheddle_kernels.so', 'not a library')
  const again = await build()
  expect(again).toMatchObject({ compiled: 0, linked: true })
  expect(again.report.library.digest).toBe(report.library.digest)
  expect((await readFile(library)).length).toBe(report.library.bytes)
})

test('a refused file is a finding with the compiler’s first error, and no library appears', async () => {
  project = await testProject({ fine: 'int fine;\n', bad: 'int bad() { return missing_name; }\n' })
  await expect(build()).rejects.toMatchObject({
    code: 'build.compile',
    exitCode: 1,
    message: expect.stringMatching(/bad\.cu:[\s\S]*missing_name/),
  })
  expect(existsSync(outputs(project.root).library('simt'))).toBe(false)
})

describe('instances of an op', () => {
  const instance = (type: string) =>
    `#include <stdint.h>\nnamespace { using T = ${type}; T made() { return 1; } }\nextern "C" int one_${type}() { return made(); }\n`

  test('are compiled together, despite shared names, and again after a change of one', async () => {
    project = await testProject({ one__a: instance('int'), one__b: instance('long'), two__a: instance('char') })
    const { report, compiled } = await build()
    expect(compiled).toBe(4)
    expect(report.objects.map(({ source }) => source)).toEqual([
      'cuda/one__a.cu',
      'cuda/one__b.cu',
      'cuda/two__a.cu',
      'registry.cpp',
    ])
    expect(new Set(report.objects.map(({ key }) => key)).size).toBe(4)
    expect(await readdir(join(project.root, 'cache/objects'))).toHaveLength(3)
    expect(await build()).toMatchObject({ compiled: 0, linked: false })
    await project.write('generated/cuda/one__b.cu', instance('short'))
    expect(await build()).toMatchObject({ compiled: 2, linked: true })
  })

  test('are compiled one by one if one is refused, which is named', async () => {
    project = await testProject({ one__a: instance('int'), one__b: 'int bad() { return missing_name; }\n' })
    const message = await build().then(
      () => 'built',
      (error: unknown) => String(error),
    )
    expect(message).toMatch(/op one: .* refused .*one__b\.cu:[\s\S]*one__b\.cu:1:[\s\S]*missing_name/)
    expect(message).not.toContain('one__a')
    await project.write('generated/cuda/one__b.cu', instance('short'))
    expect(await build()).toMatchObject({ linked: true })
  })
})

test('editors get the compile command of each file', async () => {
  project = await testProject({ one: 'int one;\n' })
  await build()
  const commands: { file: string; arguments: string[] }[] = JSON.parse(
    await readFile(join(project.root, '.heddle/simt/compile_commands.json'), 'utf8'),
  )
  expect(commands.map(({ file }) => file)).toEqual([
    join(project.root, 'generated/cuda/one.cu'),
    join(project.root, 'generated/registry.cpp'),
  ])
  expect(commands[0]?.arguments).toContain('-DHEDDLE_SIMT=1')
})
