/**
 * Unchanged specs are not read again, and the result is that of reading all of them: after each change of a module, including changes of its
 * imports, cached results are compared with those of a run without a cache.
 */
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { knownSpecs } from '../../../src/frontend/cache/known.js'
import { openProject, readSpecsOrThrow } from '../../../src/frontend/index.js'
import { readProjectOrThrow } from '../../../src/frontend/read/read.js'
import { structuralHash } from '../../../src/ir/structural_hash.js'
import { memoFolder } from '../../../src/memo.js'

const home = fileURLToPath(new URL('../../..', import.meta.url))
let root = ''
const write = (file: string, text: string) => writeFile(join(root, file), text)

const op = (name: string, body: string, head = '') => `import { op, tensor } from 'heddle'
${head}
export const ${name} = op('${name}', {
  dims: ['m'], types: { T: ['f32'] }, inputs: { x: tensor('T', 'm') }, outputs: { y: tensor('T', 'm') },
  body: (i) => (m) => ({ y: ${body} }),
})
`
const factory = (body: string) => `import { op, tensor } from 'heddle'
export const scaled = (name: string) => op(name, {
  dims: ['m'], types: { T: ['f32'] }, inputs: { x: tensor('T', 'm') }, outputs: { y: tensor('T', 'm') },
  body: (i) => (m) => ({ y: ${body} }),
})
`

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'heddle-kept-specs-'))
  for (const folder of ['specs', 'shared', 'node_modules']) await mkdir(join(root, folder))
  await symlink(home, join(root, 'node_modules/heddle'))
  await write('package.json', '{ "name": "own", "type": "module" }\n')
  await write('shared/factor.ts', 'export const factor = 2\n')
  await write('specs/times.ts', op('times', 'i.x(m) * factor', "import { factor } from '../shared/factor.js'"))
  await write('specs/alone.ts', op('alone', 'i.x(m) + 1'))
  await write('specs/factory.ts', factory('i.x(m) * 3'))
  await write('specs/made.ts', "import { scaled } from './factory.js'\nexport const tripled = scaled('tripled')\n")
})
afterAll(() => rm(root, { recursive: true, force: true }))

const outcome = (read: () => object): string => {
  try {
    return structuralHash(read())
  } catch (error) {
    return String(error)
  }
}

/** Modules that were parsed, after comparing the result with a run without a cache. */
function parsed(): string[] {
  const opened = openProject(root)
  const now = outcome(() => readProjectOrThrow(opened, ['specs']))
  process.env.HEDDLE_KEPT = 'off'
  try {
    expect(now).toBe(outcome(() => readSpecsOrThrow({ root, specs: ['specs'] })))
  } finally {
    delete process.env.HEDDLE_KEPT
  }
  const specs = opened.project.getSourceFiles().map((file) => file.getFilePath())
  return specs.filter((file) => file.startsWith(join(root, 'specs'))).map((file) => basename(file))
}

it('reads only changed modules and their importers', async () => {
  expect(parsed()).toEqual(['alone.ts', 'factory.ts', 'made.ts', 'times.ts'])
  expect(parsed()).toEqual([])
  await write('specs/alone.ts', op('alone', 'i.x(m) + 2'))
  expect(parsed()).toEqual(['alone.ts'])
  await write('shared/factor.ts', 'export const factor = 5\n')
  expect(parsed()).toEqual(['times.ts'])
  await write('specs/factory.ts', factory('i.x(m) * 4'))
  expect(parsed()).toEqual(['factory.ts', 'made.ts'])
  expect(parsed()).toEqual([])
})

it('reads an op with a changed body without its importers, and with them after any other change', async () => {
  await write('specs/uses.ts', "import { alone } from './alone.js'\nexport const names = [alone.name]\n")
  expect(parsed()).toHaveLength(5)
  await write('specs/alone.ts', op('alone', '(i.x(m) + 2) * 3'))
  expect(parsed()).toEqual(['alone.ts'])
  await write('specs/alone.ts', op('alone', '(i.x(m) + 2) * 3', '// a line more'))
  expect(parsed()).toEqual(['alone.ts', 'uses.ts'])
  // Code that resembles a body but is not one affects every module that imports it.
  const table = (by: number) => `const op = (name: string, given: { body: () => number }) => given.body()
export const factor = op('factor', { body: () => ${by} })
`
  await write('specs/uses.ts', table(2))
  await write('specs/more.ts', "import { factor } from './uses.js'\nexport const twice = factor\n")
  parsed()
  await write('specs/uses.ts', table(3))
  expect(parsed()).toEqual(['more.ts', 'uses.ts'])
  await rm(join(root, 'specs/more.ts'))
  await rm(join(root, 'specs/uses.ts'))
  await write('specs/alone.ts', op('alone', 'i.x(m) + 2'))
  parsed()
})

it('does not use results from before a change', async () => {
  const kept = memoFolder(root)
  await cp(kept, join(root, 'before'), { recursive: true })
  await write('specs/alone.ts', op('alone', 'i.x(m) + 9'))
  expect(knownSpecs(root, 'specs')).toBeUndefined()
  expect(parsed()).toEqual(['alone.ts'])
  expect(knownSpecs(root, 'specs')?.kernels).toHaveLength(3)
  // An entry that was whole once, in the place of the latest.
  await cp(join(root, 'before'), kept, { recursive: true })
  expect(knownSpecs(root, 'specs')).toBeUndefined()
  expect(parsed()).toEqual(['alone.ts'])
  await write('tsconfig.json', '{ "extends": "./base.json" }\n')
  await write('base.json', '{ "compilerOptions": { "module": "NodeNext", "strict": true } }\n')
  parsed()
  expect(knownSpecs(root, 'specs')?.kernels).toHaveLength(3)
  await write('base.json', '{ "compilerOptions": { "module": "NodeNext", "strict": true, "noUnusedLocals": true } }\n')
  expect(knownSpecs(root, 'specs')).toBeUndefined()
  await rm(join(root, 'tsconfig.json'))
  parsed()
})

it('finds errors between a changed module and an unchanged one', async () => {
  await write('specs/alone.ts', op('times', 'i.x(m)'))
  expect(parsed()).toContain('alone.ts')
  expect(() => readSpecsOrThrow({ root, specs: ['specs'] })).toThrow('op times is declared twice')
  await write('specs/alone.ts', op('alone', 'i.x(m) + 2'))
  await write('shared/factor.ts', "export const factor = 'no number'\n")
  parsed()
  await write('shared/factor.ts', 'export const factor = 5\n')
  // The op that a function returns is no longer declared.
  await write('specs/made.ts', 'export const nothing = 0\n')
  parsed()
  expect(() => readSpecsOrThrow({ root, specs: ['specs'] })).toThrow('export what the function makes')
})

it('reads everything if a module is added, removed, or augments others', async () => {
  await write('specs/made.ts', "import { scaled } from './factory.js'\nexport const tripled = scaled('tripled')\n")
  await write('specs/more.ts', op('more', 'i.x(m)'))
  expect(parsed()).toHaveLength(5)
  await rm(join(root, 'specs/more.ts'))
  expect(parsed()).toHaveLength(4)
  await write('specs/alone.ts', `${op('alone', 'i.x(m) + 3')}declare global { type Everywhere = 1 }\n`)
  parsed()
  await write('specs/times.ts', op('times', 'i.x(m)'))
  expect(parsed()).toHaveLength(4)
})
