import { existsSync, readFileSync } from 'node:fs'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { buildKernels, cacheFolder, libraryState, outputs } from '../../src/toolchain/index.js'
import { type TestProject, testProject } from './project.js'

let project: TestProject

afterEach(async () => {
  vi.unstubAllEnvs()
  await rm(project.root, { recursive: true, force: true })
})

/** Writes its last argument's file, as a compiler would, after printing `stderr`. */
const compiler = (stderr: string, version = 'fake 1.0, release 1') => `
[ "$1" = --version ] && { echo "${version}"; exit 0; }
for last; do :; done
cat >&2 <<'END'
${stderr}
END
echo "$@" > "$last"`

const spilling = `ptxas info    : Compiling entry function '_ZN6heddle4spinEv' for 'sm_90'
ptxas info    : Function properties for _ZN6heddle4spinEv
    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 255 registers`

describe('spills', () => {
  test('a spill fails the build and names kernel, file and architecture', async () => {
    project = await testProject({ spin: 'void spin();\n' })
    vi.stubEnv('HEDDLE_NVCC', await project.script('nvcc', compiler(spilling)))
    await expect(buildKernels({ target: 'cuda', root: project.root })).rejects.toMatchObject({
      code: 'build.spill',
      exitCode: 1,
      message: expect.stringContaining('spin (cuda/spin.cu) spills on sm_90: 4 bytes stored, 4 loaded, 255 registers'),
    })
    expect(existsSync(outputs(project.root).library('cuda'))).toBe(false)
  })

  test.each([
    ['the pipelined loop of attention', '19attention_pipelined', '120 bytes', true],
    ['the pipelined loop of attention', '19attention_pipelined', '124 bytes', false],
    ['products of few rows', '19matmul_products_few', '40 bytes', true],
    ['products of few rows', '19matmul_products_few', '44 bytes', false],
    ['a kernel that reads rows again', '11spin_reread', '96 bytes', true],
    ['a kernel that reads rows again', '11spin_reread', '100 bytes', false],
    ['a kernel that keeps rows', '9spin_kept', '4 bytes', false],
  ])('%s, %s, with %s is linked: %s', async (_, symbol, bytes, isLinked) => {
    project = await testProject({ spin: 'void spin();\n' })
    const pipelined = spilling.replaceAll('_ZN6heddle4spinEv', `_ZN6heddle${symbol}Ev`).replaceAll('4 bytes', bytes)
    vi.stubEnv('HEDDLE_NVCC', await project.script('nvcc', compiler(pipelined)))
    const built = buildKernels({ target: 'cuda', root: project.root })
    if (isLinked) await expect(built).resolves.toMatchObject({ linked: true })
    else await expect(built).rejects.toMatchObject({ code: 'build.spill' })
  })

  test('a kernel without one is reported and linked', async () => {
    project = await testProject({ spin: 'void spin();\n' })
    vi.stubEnv('HEDDLE_NVCC', await project.script('nvcc', compiler(spilling.replaceAll('4 bytes', '0 bytes'))))
    const { report, linked } = await buildKernels({ target: 'cuda', root: project.root })
    expect(linked).toBe(true)
    expect(report.kernels[0]).toMatchObject({ kernel: 'spin', arch: 'sm_90', registers: 255, stackBytes: 8 })
  })
})

describe('static shared memory', () => {
  test.each([
    [49152, true],
    [49156, false],
  ])('%i bytes are linked: %s', async (bytes, isLinked) => {
    project = await testProject({ spin: 'void spin();\n' })
    const report = spilling.replaceAll('4 bytes', '0 bytes').replace('255 registers', `255 registers, ${bytes} bytes smem`)
    vi.stubEnv('HEDDLE_NVCC', await project.script('nvcc', compiler(report.replace('sm_90', 'sm_90a'))))
    const built = buildKernels({ target: 'cuda', root: project.root })
    if (isLinked) await expect(built).resolves.toMatchObject({ linked: true })
    else
      await expect(built).rejects.toMatchObject({
        code: 'build.shared',
        exitCode: 1,
        message: expect.stringContaining(
          'spin (cuda/spin.cu) on sm_90a: expected at most 49152 bytes of static shared memory, got 49156',
        ),
        hint: expect.stringContaining('smaller arrays in shared memory'),
      })
  })
})

describe('the compiler', () => {
  test('its version is part of the key', async () => {
    project = await testProject({ one: 'int one;\n' })
    const build = () => buildKernels({ target: 'cuda', root: project.root })
    vi.stubEnv('HEDDLE_NVCC', await project.script('nvcc', compiler('')))
    expect(await build()).toMatchObject({ compiled: 2, linked: true })
    expect(await build()).toMatchObject({ compiled: 0, linked: false })
    await project.script('nvcc', compiler('', 'fake 2.0, release 2'))
    expect(await build()).toMatchObject({ compiled: 2, linked: true })
  })

  test('a missing one is an environment error', async () => {
    project = await testProject({ one: 'int one;\n' })
    vi.stubEnv('HEDDLE_NVCC', join(project.root, 'absent'))
    await expect(buildKernels({ target: 'cuda', root: project.root })).rejects.toMatchObject({
      code: 'toolchain.nvcc',
      exitCode: 3,
    })
  })

  test('sixteen of it at a time do not leak listeners', async () => {
    project = await testProject(Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`k${i}`, `int k${i};\n`])))
    const started = join(project.root, 'started')
    // Each waits for all of them.
    const meeting = `[ "$1" = --version ] && { echo "fake 1.0, release 1"; exit 0; }
echo >> "${started}"; while [ $(wc -l < "${started}") -lt 16 ]; do sleep 0.05; done
${compiler('')}`
    vi.stubEnv('HEDDLE_NVCC', await project.script('nvcc', meeting))
    const warnings: string[] = []
    const warned = ({ name }: Error) => void warnings.push(name)
    process.on('warning', warned)
    try {
      await buildKernels({ target: 'cuda', root: project.root, jobs: 16, signal: new AbortController().signal })
    } finally {
      process.off('warning', warned)
    }
    expect(warnings).toEqual([])
  })

  test('cancelling ends all its processes, and leaves no partial file', async () => {
    project = await testProject({ one: 'int one;\n', two: 'int two;\n' })
    const pidFile = join(project.root, 'pid')
    const slow = `[ "$1" = --version ] && { echo "fake 1.0, release 1"; exit 0; }\nsleep 600 & echo $! > "${pidFile}"\nwait`
    vi.stubEnv('HEDDLE_NVCC', await project.script('nvcc', slow))
    const cancel = new AbortController()
    const built = buildKernels({ target: 'cuda', root: project.root, signal: cancel.signal, jobs: 1 })
    const outcome = expect(built).rejects.toThrow('stop')
    const pid = await vi.waitFor(async () => {
      const text = await readFile(pidFile, 'utf8')
      expect(text).toMatch(/\d\n/)
      return Number(text)
    })
    expect(isRunning(pid)).toBe(true)
    cancel.abort(new Error('stop'))
    await outcome
    await vi.waitFor(() => expect(isRunning(pid)).toBe(false))
    expect((await readdir(join(cacheFolder(), 'objects'))).filter((name) => !name.startsWith('.lock-'))).toEqual([])
  })
})

/** True if a process still runs; one that has ended and waits for its parent (a zombie) does not. */
function isRunning(pid: number): boolean {
  const stat = `/proc/${pid}/stat`
  return existsSync(stat) && !/\) [ZX] /.test(readFileSync(stat, 'utf8'))
}

describe('input', () => {
  test('without a manifest there is nothing to build', async () => {
    project = await testProject({})
    await expect(
      buildKernels({ target: 'simt', root: project.root, generated: join(project.root, 'absent') }),
    ).rejects.toMatchObject({ code: 'build.generated', exitCode: 2, hint: 'run `heddle gen` first' })
  })

  test('a report is stale as soon as the manifest differs', async () => {
    project = await testProject({ one: 'int one;\n' })
    vi.stubEnv('HEDDLE_NVCC', await project.script('nvcc', compiler('')))
    expect(await libraryState(project.root, 'cuda')).toBe('missing')
    await buildKernels({ target: 'cuda', root: project.root })
    expect(await libraryState(project.root, 'cuda')).toBe('current')
    await project.write('generated/manifest.json', '{"version":1,"kernels":[]}')
    expect(await libraryState(project.root, 'cuda')).toBe('stale')
  })
})
