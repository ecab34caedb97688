/**
 * Verbs in a project with foreign files in every folder that they write to: each file survives each verb unchanged. No kernel is compiled; verbs
 * that write after compiling use the functions tested here and in test/output.test.ts.
 */
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { benchResult, planTimes } from '../bench/results.js'
import { heddle, punctuationModel, repository } from './host.js'

let root = ''
const at = (path: string): string => join(root, path)

async function put(path: string, text: string): Promise<void> {
  await mkdir(dirname(at(path)), { recursive: true })
  await writeFile(at(path), text)
}

const op = (name: string): string => `export const ${name} = op('${name}', {
  dims: ['n'], inputs: { x: tensor('f32', 'n') }, outputs: { y: tensor('f32', 'n') },
  body: ({ x }) => (c) => ({ y: x(c) * 2 }),
})
`

/** Files that heddle did not write. */
const foreign = [
  ...['README.md', 'src/app.ts', '.env', 'specs/notes.md'],
  ...['generated/prisma/client.ts', 'generated/cuda/mine.cu', 'generated/cuda/README.md', 'generated/resources.jsonl'],
  ...['.heddle/mine.txt', '.heddle/bundle/mine.txt', 'out/README.md', 'out/CMakeLists.txt', 'out/weights.safetensors'],
  ...['exported/build/cache.txt', 'exported/src/mine.cpp', 'mine.json'],
]

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'heddle-foreign-'))
  await mkdir(at('node_modules'))
  await symlink(repository, at('node_modules/heddle'))
  await put('package.json', '{ "name": "own", "type": "module" }\n')
  await put('specs/index.ts', `import { op, tensor } from 'heddle'\n${op('twice')}${op('thrice')}`)
  expect((await heddle(['gen'], root)).exitCode).toBe(0)
  const exported = await heddle(['export', 'twice', '--out', 'exported', '--target', 'simt'], root)
  expect(exported.exitCode, exported.log).toBe(0)
  for (const path of foreign) await put(path, `${path} is mine\n`)
  await symlink(root, at('link'))
})
afterAll(() => rm(root, { recursive: true, force: true }))

/** Every foreign file with its content and time. */
const state = () =>
  Promise.all(foreign.map(async (path) => [path, await readFile(at(path), 'utf8'), (await stat(at(path))).mtimeMs] as const))

const folderRefused = 'error[output.folder]'
const export_ = ['export', 'twice', '--target', 'simt', '--out']

it.each<[argv: string[], code: number, says?: string]>([
  [['gen'], 0, '0 written'],
  [['gen', '--check'], 0, '0 differ'],
  [['gen', '--out', '.'], 2, folderRefused],
  [['gen', '--out', '..'], 2, folderRefused],
  [['gen', '--out', 'link'], 2, folderRefused],
  [['gen', '--out', 'specs'], 2, folderRefused],
  [['gen', '--out', 'src'], 2, 'has files that heddle did not write: app.ts'],
  [['gen', '--out', process.env.HOME ?? '/'], 2, folderRefused],
  [['build', '--target', 'cuda', '--check', '--record'], 2, 'error[output.file]'],
  [[...export_, 'exported'], 0, ' 0 files written or removed'],
  [[...export_, 'out'], 2, folderRefused],
  [[...export_, '.'], 2, folderRefused],
  [['repro', 'twice', '--device', 'simt', '--out', 'out'], 2, folderRefused],
  [['repro', 'twice', '--device', 'simt', '--out', '.'], 2, folderRefused],
  [['explore', '--bench', 'mine.json', '--out', 'out'], 2, 'error[explore.out]'],
  [['init', 'out', '--no-install'], 2, 'error[init.folder]'],
  [['bundle'], 3, 'error[bundle.missing]'],
  [['tune', '--device', 'simt', '--prepare', 'out'], 2, folderRefused],
  [['tune', '--device', 'simt', '--prepare', '.'], 2, folderRefused],
  [['calibrate', punctuationModel, '--import', 'mine.json', '--out', 'out'], 2, 'error[output.write]'],
  [['bench', 'twice', '--device', 'simt', '--save', 'out'], 2, 'error[bench.save]'],
  [['bench', 'encoder', '--device', 'simt', '--report', 'out'], 2, 'error[bench.report]'],
  [['run', punctuationModel, '--text', 'a', '--device', 'simt', '--out', 'out'], 2, 'error[output.write]'],
  [['score', punctuationModel, '--cases', 'mine.json', '--out', 'out'], 2, 'error[output.write]'],
  [['inspect', 'twice'], 0],
  [['completion', 'bash'], 0],
  [['explain', 'output.file'], 0],
  [['clean'], 0, 'not removed: bundle, mine.txt'],
])('heddle %j', async (argv, code, says = '') => {
  const before = await state()
  const { exitCode, log, out } = await heddle(argv, root)
  expect(log + out).toContain(says)
  expect(exitCode, log).toBe(code)
  expect(await state()).toEqual(before)
})

it('a file that is not a tuning file is not replaced, unless heddle wrote it', async () => {
  await put('specs/tuning.json', 'mine')
  const { exitCode, log } = await heddle(['tune', '--device', 'simt'], root)
  expect([exitCode, log]).toEqual([2, expect.stringContaining('error[tuning.json]')])
  expect(await readFile(at('specs/tuning.json'), 'utf8')).toBe('mine')
  await rm(at('specs/tuning.json'))
})

it('a file that was named is replaced, and its neighbours stay', async () => {
  const before = await state()
  for (const name of ['page.html', 'mine.html']) await put(`report/${name}`, 'mine')
  await put('run.json', JSON.stringify(benchResult([planTimes('unfused', [1, 32], 0.8, 0.04, undefined)])))
  const { exitCode, log } = await heddle(['explore', '--bench', 'run.json', '--out', 'report/page.html'], root)
  expect(exitCode, log).toBe(0)
  expect(await readdir(at('report'))).toEqual(['mine.html', 'page.html'])
  expect(await readFile(at('report/mine.html'), 'utf8')).toBe('mine')
  expect(await readFile(at('report/page.html'), 'utf8')).toContain('<!doctype html>')
  expect(await state()).toEqual(before)
})

it('an export replaces the previous one, except files that others wrote or edited', async () => {
  const own = async () => (await readdir(at('exported'), { recursive: true })).filter((path) => /twice|thrice/.test(path)).sort()
  const [before, ofTwice] = [await state(), await own()]
  await put('exported/example/main.cpp', 'mine now')
  const refused = await heddle(['export', 'thrice', '--target', 'simt', '--out', 'exported'], root)
  expect([refused.exitCode, refused.log]).toEqual([2, expect.stringMatching(/output\.file.*exported\/example\/main\.cpp/)])
  expect(await own()).toEqual(ofTwice)
  await rm(at('exported/example/main.cpp'))
  await put('exported/include/twice.h', 'mine now')
  expect((await heddle(['export', 'thrice', '--target', 'simt', '--out', 'exported'], root)).exitCode).toBe(0)
  expect(await own()).toEqual(['include/thrice.h', 'include/twice.h', 'kernels/thrice.cu', 'src/thrice.cpp', 'thrice_torch.py'])
  expect(await state()).toEqual(before)
})
