/** Compiler errors in an editor: a real tsserver loads the shipped plugin, and receives an editor's requests. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from 'rolldown'
import { afterAll, beforeAll, expect, it } from 'vitest'
import configurations from '../../rolldown.config.js'
import { mayDeclare } from '../../src/editor/check.js'
import { repository } from '../cli/host.js'
import { type Shown, TsServer } from './tsserver.js'

let folder: string
let server: TsServer

beforeAll(async () => {
  await mkdir(join(repository, '.heddle'), { recursive: true })
  folder = await mkdtemp(join(repository, '.heddle', 'editor-'))
  const package_ = join(folder, 'node_modules', 'heddle')
  const shipped = [configurations].flat().find(({ input }) => typeof input === 'object' && 'typescript-plugin' in input)
  await build({ ...shipped, output: { ...[shipped?.output].flat()[0], dir: join(package_, 'dist') } })
  const compilerOptions = {
    ...{ target: 'ES2023', lib: ['ES2023'], module: 'NodeNext', strict: true, noEmit: true, types: [] },
    paths: { heddle: [join(repository, 'src/index.ts')] },
    plugins: [{ name: 'heddle/dist/typescript-plugin.cjs' }],
  }
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['specs'] }))
  await mkdir(join(folder, 'specs'))
  server = new TsServer(folder)
})
afterAll(async () => {
  server.close()
  await rm(folder, { recursive: true })
})

const op = (value: string, more = ''): string => `import { exp, op, tensor } from 'heddle'
import { half } from './half.js'
export const scaled = op('scaled', {
  dims: ['n'],
  inputs: { x: tensor('f32', 'n') },
  outputs: { y: tensor('f32', 'n') },
  body: ({ x }) => (c) => ({ y: exp(half(${value})) }),
})
${more}`

const own = (shown: readonly Shown[]): readonly Shown[] => shown.filter(({ source }) => source === 'heddle')

it("shows the compiler's errors in place, none without errors, and follows edits", async () => {
  const [file, twin, helper] = ['bad.ts', 'good.ts', 'half.ts'].map((name) => join(folder, 'specs', name))
  if (file === undefined || twin === undefined || helper === undefined) throw new Error('three files')
  const right = 'export const half = (a: number): number => a / 2\n'
  await writeFile(helper, right)
  const wrong = op('Math.abs(x(c)) + x(c, c)', 'export const text: string = 1\n')
  for (const path of [file, twin]) await writeFile(path, path === file ? wrong : op('x(c)').replaceAll('scaled', 'twin'))
  server.open(file, wrong)
  server.open(twin, op('x(c)').replaceAll('scaled', 'twin'))

  const shown = await server.errors(file)
  expect(own(shown)).toMatchObject([
    {
      text: "HED102: Math.abs has no counterpart on a device\nhint: import { abs } from 'heddle' and call abs(...)",
      code: 102,
      start: { line: 7, offset: 42 },
      end: { line: 7, offset: 50 },
    },
    { code: 106, start: { line: 7, offset: 59 }, end: { line: 7, offset: 66 } },
  ])
  // TypeScript's own diagnostics stay.
  expect(shown.filter(({ source }) => source !== 'heddle').map(({ code }) => code)).toContain(2322)
  expect(await server.errors(twin)).toEqual([])

  server.replace(file, op('x(c)'))
  expect(await server.errors(file)).toEqual([])
  // The body calls a function of another open file.
  server.open(helper, right.replace('a / 2', 'Math.trunc(a)'))
  expect(own(await server.errors(helper))).toEqual([])
  server.replace(file, op('x(d)'))
  expect(own(await server.errors(file)).map(({ code }) => code)).toEqual([101])
  server.replace(file, '')
  expect(own(await server.errors(file))).toEqual([])
})

it('ignores files without declarations', () => {
  expect(mayDeclare("import { op } from 'heddle'\nop('a', {})")).toBe(true)
  expect(mayDeclare("import { openDevice } from 'heddle/runtime'")).toBe(false)
  expect(mayDeclare('const op = 1')).toBe(false)
})
