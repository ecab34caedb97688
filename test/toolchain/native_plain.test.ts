/** The native build without CMake: one call per source, then one per library, with a compiler that only records its arguments. */
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { compilePlain } from '../../src/toolchain/native_plain.js'
import { packageRoot } from '../../src/toolchain/paths.js'

let work = ''
beforeEach(async () => {
  work = await mkdtemp(join(tmpdir(), 'heddle-plain-'))
})
afterEach(() => rm(work, { recursive: true, force: true }))

/** A compiler that writes its arguments to a log, and fails for a source of that name. */
async function recorder(failing: string): Promise<string> {
  const path = join(work, 'c++')
  await writeFile(path, `#!/bin/sh\necho "$@" >> ${work}/log\ncase "$*" in *${failing}*) echo "error: no" >&2; exit 1;; esac\n`)
  await chmod(path, 0o755)
  return path
}

const source = join(packageRoot(), 'native')
const calls = async (): Promise<readonly string[]> => (await readFile(join(work, 'log'), 'utf8')).trim().split('\n')

it('compiles every source of the addon and of the CPU device, and links both', async () => {
  expect(await compilePlain(source, join(work, 'out'), { cxx: await recorder('nothing.cpp') })).toBeUndefined()
  const sources = [...(await readdir(join(source, 'addon'))), ...(await readdir(join(source, 'simt', 'plugin')))]
  const wanted = sources.filter((name) => name.endsWith('.cpp'))
  const all = await calls()
  const compiled = all.filter((call) => call.includes(' -c '))
  for (const name of wanted) expect(compiled.filter((call) => call.includes(`/${name} -o `))).toHaveLength(1)
  // The shim for glibc is a part of both.
  expect(compiled).toHaveLength(wanted.length + 2)
  expect(compiled.every((call) => call.includes('-Werror') && call.includes('-std=c++17'))).toBe(true)
  const linked = all.filter((call) => call.startsWith('-shared'))
  expect(linked.map((call) => call.split('/').at(-1))).toEqual(['heddle.node', 'libheddle_simt.so'])
})

it('returns what the compiler says of a source that it refuses, and links nothing', async () => {
  expect(await compilePlain(source, join(work, 'out'), { cxx: await recorder('addon/steps.cpp') })).toMatchObject({
    exitCode: 1,
    stderr: 'error: no',
  })
  expect((await calls()).filter((call) => call.startsWith('-shared'))).toEqual([])
})
