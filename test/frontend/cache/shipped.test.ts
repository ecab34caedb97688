/**
 * The declarations that ship are used as the package stores them, and only with the compiler, the version and the texts they were read from.
 * The package here stores them with planted lines, so that the specs were read where the lines are those of the files.
 */
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import { type ShippedSpecs, shippedOf } from '../../../src/frontend/cache/declared.js'
import { knownShipped, packedShipped, shippedMemo } from '../../../src/frontend/cache/shipped.js'
import { openProject } from '../../../src/frontend/project/project.js'
import { readModules } from '../../../src/frontend/read/cached.js'
import { readSearched } from '../../../src/frontend/search.js'
import type { Kernel } from '../../../src/ir/kernel.js'
import { memoFolder } from '../../../src/memo.js'

const home = fileURLToPath(new URL('../../..', import.meta.url))
/** Line that no file has. */
const planted = 1000
let [work, folder, root] = ['', '', '']

const op = (name: string, factor: number) => `import { op, tensor } from 'heddle'
export const ${name} = op('${name}', {
  dims: ['m'], types: { T: ['f32'] }, inputs: { x: tensor('T', 'm') }, outputs: { y: tensor('T', 'm') },
  body: ({ x }) => (m) => ({ y: x(m) * ${factor} }),
})
`

/** The declarations of the package, as `npm run memo` reads them, at planted lines. */
let specs: ShippedSpecs

/** A package with one op and a standard library of another, and a project that has it installed. */
beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), 'heddle-shipped-'))
  folder = join(work, 'package')
  root = join(work, 'project')
  for (const path of ['package/specs', 'package/src/std', 'package/dist/specs', 'project/node_modules'])
    await mkdir(join(work, path), { recursive: true })
  await cp(join(home, 'dist/types/src'), join(folder, 'dist/types/src'), { recursive: true })
  const module = 'export const [ops, graphs, plans, programs, conversions] = [{ half: {} }, {}, [], {}, []]\n'
  await writeFile(join(folder, 'dist/specs/index.js'), module)
  await symlink(folder, join(root, 'node_modules/heddle'))
  await writeFile(join(root, 'package.json'), '{ "type": "module" }\n')
  await writeTexts()
  const { files, standard, diagnostics } = readModules(openProject(folder), ['specs'])
  expect(diagnostics).toEqual([])
  const { kernels, layouts } = shippedOf(files, standard)
  const moved = (kernel: Kernel): Kernel => ({ ...kernel, source: { ...kernel.source, line: planted } })
  specs = { kernels: kernels.map(moved), layouts, standard: standard.map((each) => ({ ...each, kernel: moved(each.kernel) })) }
})

const forget = async (): Promise<void> => {
  for (const path of [folder, root]) await rm(memoFolder(path), { recursive: true, force: true })
}

afterAll(async () => {
  await forget()
  await rm(work, { recursive: true, force: true })
})

/** Writes what the declarations depend on. */
async function writeTexts(): Promise<void> {
  for (const part of ['specs', 'src/std']) await rm(join(folder, part), { recursive: true, force: true })
  for (const part of ['specs', 'src/std']) await mkdir(join(folder, part))
  await cp(join(home, 'package.json'), join(folder, 'package.json'))
  await writeFile(join(folder, 'specs/half.ts'), op('half', 0.5))
  await writeFile(join(folder, 'src/std/third.ts'), op('third', 0.3))
}

/** The package as it is packed, and no caches. */
beforeEach(async () => {
  await writeTexts()
  await writeFile(shippedMemo(folder), packedShipped(folder, specs))
  await forget()
})
afterEach(() => void vi.unstubAllEnvs())

/** Lines of the ops in a project that uses them. */
async function lines(): Promise<Record<string, number>> {
  const { standard } = await readSearched(root, 'specs', { shipped: true, ops: ['half'] })
  return Object.fromEntries(standard.map(({ name, source }) => [name, source.line]))
}

const stored = { half: planted, third: planted }

it('are used as stored, by projects with and without specs; nothing in the package is written', async () => {
  const files = async () =>
    Promise.all(
      (await readdir(folder, { recursive: true })).sort().map(async (name) => {
        const { mtimeMs, size } = await stat(join(folder, name))
        return [name, mtimeMs, size]
      }),
    )
  const before = await files()
  expect(await lines()).toEqual(stored)
  await mkdir(join(root, 'specs'))
  await writeFile(join(root, 'specs/own.ts'), op('own', 2))
  expect(await lines()).toEqual(stored)
  expect(await files()).toEqual(before)
  await rm(join(root, 'specs'), { recursive: true })
})

const damaged = async (damage: (content: Buffer) => Uint8Array): Promise<void> => {
  const file = shippedMemo(folder)
  await writeFile(file, damage(await readFile(file)))
}

it.each<[string, () => Promise<void>]>([
  ['a spec is edited', () => writeFile(join(folder, 'specs/half.ts'), `${op('half', 0.5)}// edited\n`)],
  ['there is another spec', () => writeFile(join(folder, 'specs/more.ts'), op('more', 4))],
  ['a spec has another name', () => rename(join(folder, 'specs/half.ts'), join(folder, 'specs/halved.ts'))],
  ['the standard library is edited', () => writeFile(join(folder, 'src/std/third.ts'), op('third', 0.33))],
  ['the package has another version', () => writeFile(join(folder, 'package.json'), '{ "name": "heddle", "version": "9.9.9" }')],
  ['another compiler has read them', () => writeFile(shippedMemo(folder), packedShipped(folder, specs, ['another', 'compiler']))],
  ['a byte is another', () => damaged((content) => content.fill(content[40] === 7 ? 8 : 7, 40, 41))],
  ['the file is cut off', () => damaged((content) => content.subarray(0, 200))],
  ['the file is empty', () => damaged(() => new Uint8Array())],
  ['there is no file', () => rm(shippedMemo(folder))],
  ['no stored result may be used', async () => void vi.stubEnv('HEDDLE_KEPT', 'off')],
])('are not known where %s', async (_, change) => {
  expect(knownShipped(folder)).toEqual(specs)
  await change()
  expect(knownShipped(folder)).toBeUndefined()
})

it('are read where those that are stored are of other texts', async () => {
  const other = await readFile(shippedMemo(folder))
  await writeFile(join(folder, 'specs/half.ts'), op('half', 0.25))
  await writeFile(shippedMemo(folder), packedShipped(folder, specs))
  expect(await lines()).toEqual(stored)
  await writeFile(shippedMemo(folder), other)
  expect(await lines()).toEqual({ half: 2, third: 2 })
})

it('in a checkout are those of its last read, until a module changes', async () => {
  await rm(shippedMemo(folder))
  readModules(openProject(folder), ['specs'])
  expect(knownShipped(folder)?.kernels.map(({ name, source }) => [name, source.line])).toEqual([['half', 2]])
  await writeFile(join(folder, 'specs/half.ts'), `// edited\n${op('half', 0.5)}`)
  expect(knownShipped(folder)).toBeUndefined()
})
