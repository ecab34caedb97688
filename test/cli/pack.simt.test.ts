/** `heddle pack`: a bench and a check run from their archive with nothing but a shell on the path, and are read here as if they had run here. */
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { which } from '../../src/toolchain/index.js'
import { shapeOf } from '../runtime/remote/far.js'
import { heddle, repository } from './host.js'

let root: string
let far: string
beforeAll(async () => {
  await mkdir(join(repository, '.heddle'), { recursive: true })
  ;[root, far] = [await mkdtemp(join(repository, '.heddle', 'pack-')), await mkdtemp(join(repository, '.heddle', 'air-'))]
  await cp(join(repository, 'test/projects/mixer/specs'), join(root, 'specs'), { recursive: true })
  await mkdir(join(far, 'bin'))
  for (const name of ['sh', 'uname', 'dirname']) await symlink((await which(name)) ?? '', join(far, 'bin', name))
  expect(await heddle(['gen'], root)).toMatchObject({ exitCode: 0 })
})
afterAll(() => Promise.all([root, far].map((each) => rm(each, { recursive: true }))))

/** Runs a program with a shell, a home folder and nothing else. */
const bare = (file: string, args: readonly string[]): Promise<{ exitCode: number; log: string }> =>
  new Promise((resolve) => {
    const env = { PATH: join(far, 'bin'), HOME: join(far, 'home') }
    const child = execFile(file, args, { cwd: far, env }, (_, __, log) => resolve({ exitCode: child.exitCode ?? -1, log }))
  })

/** Packs a command, and unpacks it elsewhere. */
async function unpacked(argv: readonly string[]): Promise<string> {
  const archive = join(root, 'job.tar.gz')
  expect(await heddle(['pack', ...argv, '-o', archive], root)).toMatchObject({ exitCode: 0 })
  await rm(join(far, 'job'), { recursive: true, force: true })
  await new Promise((resolve) => execFile('tar', ['-xf', archive, '-C', far], resolve))
  return join(far, 'job/run')
}

test('a bench runs without Node and a compiler, and is read as one that ran here', async () => {
  const argv = ['bench', 'pieces', '--shape', 'rows=2,cells=8,parts=2', '--repeats', '5', '--device', 'simt']
  const run = await unpacked(argv)
  const there = await bare(run, [])
  expect(there).toMatchObject({ exitCode: 0 })
  const result = join(far, 'result.json')
  const here = await heddle(argv, root)
  const read = await heddle(['bench', '--read', result, '--save', 'times.json'], root)
  expect(read).toMatchObject({ exitCode: 0 })
  const lines = (text: string): string[] => shapeOf(text.replace(/\(memory\)|\(arithmetic\)|│ [^│]*│\n/g, ''))
  expect(lines(read.out)).toEqual(lines(here.out))
  const again = await heddle(['bench', '--read', result, '--baseline', 'times.json'], root)
  expect(again).toMatchObject({ exitCode: 0 })
  expect(again.out).toMatch(/same: \S+ rows=2,cells=8,parts=2 takes 1\.000 times as long/)
  expect(await heddle(['explore', '--bench', result, '--out', 'page.html'], root)).toMatchObject({ exitCode: 0 })
  // Nothing but the job and its result is left there.
  expect((await readdir(far)).sort()).toEqual(['bin', 'job', 'result.json'])
  await writeFile(join(far, 'job/project/specs/ops.ts'), '')
  const damaged = await bare(run, [])
  expect(damaged).toMatchObject({ exitCode: 3 })
  expect(damaged.log).toMatch(/error\[job\.damaged\]: .*ops\.ts was changed\nhint: unpack the archive again/)
  await rm(join(far, 'job/project/specs/ops.ts'))
  expect((await bare(run, [])).log).toMatch(/error\[job\.damaged\]: .*ops\.ts is missing/)
  expect((await bare(run, ['none/result.json'])).log).toMatch(/error\[job\.result\]: cannot write/)
})

test('a check says what it says here; a job without its description is refused', async () => {
  const argv = ['check', 'shift', '--dtype', 'f32', '--device=simt']
  const run = await unpacked(argv)
  expect(await bare(run, ['checked.json'])).toMatchObject({ exitCode: 0 })
  const [read, here] = [
    await heddle(['check', '--read', join(far, 'checked.json')], root),
    await heddle([...argv, '--no-nvcc'], root),
  ]
  expect(read).toMatchObject({ exitCode: 0, out: here.out })
  expect(shapeOf(read.log)).toEqual(shapeOf(here.log))
  const job = join(far, 'job/job.json')
  const text = await readFile(job, 'utf8')
  await writeFile(job, text.replace('"version":1', '"version":2'))
  expect((await bare(run, [])).log).toMatch(/error\[job\.damaged\]: .*job\.json is not the description of a job/)
  await rm(job)
  expect((await bare(run, [])).log).toMatch(/error\[job\.damaged\]: .* has no job\.json/)
})

test.each([
  [['search', 'x'], 'a.tar.gz', /error\[pack\.verb\]: heddle search x cannot be packed/],
  [['bench', 'llama', '7b'], 'a.tar.gz', /error\[pack\.verb\]: heddle bench llama cannot be packed/],
  [['bench', 'pieces', '--save', 'x'], 'a.tar.gz', /error\[pack\.verb\]: --save does not travel\nhint: give it with --read/],
  [['check', '--on', 'box'], 'a.tar.gz', /error\[pack\.verb\]: --on does not travel/],
  [['bench', 'pieces', '--fast'], 'a.tar.gz', /error\[pack\.verb\]: heddle bench has no option --fast/],
  [['bench'], 'a.tar.gz', /error\[pack\.verb\]: nothing to time/],
  [['bench', 'piece'], 'a.tar.gz', /error\[bench\.unknown\]: there is no graph or program piece/],
  [
    ['bench', 'pieces'],
    'a.zip',
    /error\[pack\.archive\]: a\.zip is not the name of an archive\nhint: end it in \.tar\.xz or \.tar\.gz/,
  ],
  [['bench', 'pieces'], 'none/a.tar.gz', /error\[pack\.archive\]: cannot write .*none/],
])('%j to %s is refused', async (argv, archive, message) => {
  const { exitCode, log } = await heddle(['pack', ...argv, '-o', archive], root)
  expect({ exitCode, log: log.replace(/^.*\n(?=error)/, '') }).toEqual({ exitCode: 2, log: expect.stringMatching(message) })
})
