/** What a check of CUDA texts compiles, for which architecture, and that it finds what does not compile and what spills. */
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { checkTexts, oneOfEachOp } from '../../src/toolchain/check_texts.js'
import { cacheFolder } from '../../src/toolchain/index.js'
import { type TestProject, testProject } from './project.js'

let project: TestProject

afterEach(async () => {
  vi.unstubAllEnvs()
  await rm(project.root, { recursive: true, force: true })
})

const kernels = Object.fromEntries(
  ['one', 'two', 'three'].flatMap((op) => ['f16', 'f32'].map((type) => [`${op}__${type}`, `int ${op}_${type};\n`])),
)

/** Keeps what it is asked for and the text it is given; refuses texts with WRONG, and says that those with SPILL spill on sm_80. */
const nvcc = `[ "$1" = --version ] && { echo "fake 1.0, release 1"; exit 0; }
for last; do case "$last" in *.cu) source=$last;; esac; done
grep -q WRONG "$source" && { echo "error: this is wrong" >&2; exit 1; }
case "$*" in *sm_80*) arch=sm_80;; *) arch=sm_90;; esac
stores=0; [ $arch = sm_80 ] && grep -q SPILL "$source" && stores=8
cat >&2 <<END
ptxas info    : Compiling entry function '_Z4spinv' for '$arch'
ptxas info    : Function properties for _Z4spinv
    0 bytes stack frame, $stores bytes spill stores, $stores bytes spill loads
ptxas info    : Used 32 registers
END
{ echo "$*"; cat "$source"; } > "$last"`

const check = async (texts: Readonly<Record<string, string>>) => {
  project = await testProject(texts)
  vi.stubEnv('HEDDLE_NVCC', await project.script('nvcc', nvcc))
  return checkTexts({ generated: join(project.root, 'generated') })
}

/** What was compiled, one text a compiler that ran. */
async function compiled(): Promise<readonly string[]> {
  const objects = join(cacheFolder(), 'objects')
  const folders = (await readdir(objects)).filter((name) => !name.startsWith('.'))
  return Promise.all(folders.map((name) => readFile(join(objects, name, 'object.o'), 'utf8')))
}

test('every text is compiled for sm_90, one instance of each op for sm_80, to machine code alone', async () => {
  expect(await check(kernels)).toEqual({ texts: { sm_90: 6, sm_80: 3 }, kernels: 2, compiled: 9 })
  const runs = await compiled()
  expect(runs).toHaveLength(2)
  const count = (text: string, what: RegExp) => [...text.matchAll(what)].length
  for (const run of runs) {
    expect(run).toContain(' -cubin ')
    expect(run).not.toContain(' -c ')
    expect(count(run, /^int /gm)).toBe(run.includes('code=sm_90a') ? 6 : 3)
  }
  for (const op of ['one', 'two', 'three']) expect(count(runs.join(), new RegExp(`^int ${op}_`, 'gm'))).toBe(3)
})

test('a text that does not compile is told from the others of its unit', async () => {
  await expect(check({ ...kernels, four__f16: 'WRONG\n' })).rejects.toMatchObject({
    code: 'build.compile',
    message: expect.stringMatching(/^1 of 7 files do not compile\nop four: nvcc refused .*four__f16\.cu/),
  })
})

test('a spill on either architecture is found', async () => {
  await expect(check({ four__f16: 'SPILL\n' })).rejects.toMatchObject({
    code: 'build.spill',
    message: expect.stringContaining('(cuda/four__f16.cu) spills on sm_80: 8 bytes stored'),
  })
})

test('which instance of an op is compiled twice differs between ops', () => {
  const files = Array.from({ length: 40 }, (_, op) =>
    ['f16', 'f32'].map((type) => ({ source: type, path: `${op}_${type}`, op: `${op}` })),
  ).flat()
  const chosen = oneOfEachOp(files)
  expect(new Set(chosen.map(({ op }) => op)).size).toBe(40)
  expect(chosen).toHaveLength(40)
  expect(new Set(chosen.map(({ source }) => source))).toEqual(new Set(['f16', 'f32']))
})
