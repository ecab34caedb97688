/**
 * Graphs and plans of a project are read by running its `index.ts`; modules that fail and values that are not declarations are refused, and no file
 * is left.
 */
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { graphs, plans } from '../../../specs/index.js'
import { readDeclarations } from '../../../src/frontend/index.js'

let root: string
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'heddle-specs-'))
  await mkdir(join(root, 'specs/deep'), { recursive: true })
})
afterEach(() => rm(root, { recursive: true }))

const write = (files: Readonly<Record<string, string>>) =>
  Promise.all(Object.entries(files).map(([path, text]) => writeFile(join(root, 'specs', path), text)))

/** Files that reading specs leaves behind in `.heddle`, except for cache files. */
const leftovers = async () => (await readdir(join(root, '.heddle'))).filter((name) => !name.startsWith('kept'))

describe('readDeclarations', () => {
  it('returns the exports of the shipped specs', async () => {
    const found = await readDeclarations(process.cwd())
    expect(Object.keys(found.graphs).sort()).toEqual(Object.keys(graphs).sort())
    expect(found.plans.map(({ name, graph }) => [name, graph])).toEqual(plans.map(({ name, graph }) => [name, graph]))
  })

  it('follows imports below the folder, with types stripped, and leaves no file', async () => {
    await write({
      'deep/part.ts': "export const name: string = 'mine' as const\n",
      'index.ts': "import { name } from './deep/part.js'\nexport const plans = [{ name, graph: 'g', groups: [] }]\n",
    })
    expect(await readDeclarations(root)).toMatchObject({
      graphs: {},
      plans: [{ name: 'mine', graph: 'g', groups: [] }],
    })
    expect(await leftovers()).toEqual([])
  })

  const nothing = { graphs: {}, plans: [], programs: [], applied: [], conversions: [], locating: expect.any(Function) }

  it('reads every module that exports a list if there is no index, and shared entries once', async () => {
    await write({
      'deep/loss.ts': "export const mine = { name: 'mine', graph: 'g', groups: [] }\nexport const plans = [mine]\n",
      'all.ts':
        "import { mine } from './deep/loss.js'\nconst other = { name: 'other', graph: 'g', groups: [] }\nconst list = [mine, other]\nexport { list as plans }\n",
      // Ops are compiled and not run, regardless of the names of their values.
      'ops.ts': "const plans = 1\nexport type graphs = number\nexport { plans as count }\nthrow new Error('run')\n",
    })
    const found = await readDeclarations(root)
    expect(found.plans.map(({ name }) => name)).toEqual(['mine', 'other'])
    await write({ 'index.ts': "export { mine } from './deep/loss.js'\nexport const plans = []\n" })
    expect((await readDeclarations(root)).plans).toEqual([])
  })

  it('reads graphs and plans that a module exports alone, with an index and without', async () => {
    const declared = `import { graph, op, plan, tensor } from 'heddle'
export const twice = op('twice', { dims: ['m'], inputs: { x: tensor('f32', 'm') }, outputs: { y: tensor('f32', 'm') }, body: ({ x }) => (m) => ({ y: 2 * x(m) }) })
export const net = graph('net', {
  inputs: { x: tensor('f32', 'm') }, weights: {},
  build: (g, { x }) => { const a = g.apply(twice, { x }).y; const y = g.apply(twice, { x: a }).y; return { nodes: { a, y }, outputs: { y } } },
})
export const fused = plan('fused', net, { groups: { both: ['a', 'y'] } })
`
    await mkdir(join(root, 'node_modules'), { recursive: true })
    await symlink(process.cwd(), join(root, 'node_modules/heddle'))
    await write({ 'deep/net.ts': declared })
    const read = async () => {
      const { graphs, plans } = await readDeclarations(root)
      return [Object.keys(graphs), plans.map(({ name }) => name)]
    }
    expect(await read()).toEqual([['net'], ['fused']])
    await write({ 'index.ts': "export * from './deep/net.js'\n" })
    expect(await read()).toEqual([['net'], ['fused']])
    // A list says which.
    await write({ 'index.ts': "export * from './deep/net.js'\nexport const plans = []\n" })
    expect(await read()).toEqual([['net'], []])
  })

  it('names the unreadable module if there is no index', async () => {
    await write({ 'deep/loss.ts': 'export const plans = [1]\n' })
    await expect(readDeclarations(root)).rejects.toMatchObject({
      code: 'specs.run',
      message: 'specs/deep/loss.ts exports graphs, plans, programs or conversions of the wrong type',
    })
  })

  it('is empty without an index, and with one that declares neither', async () => {
    expect(await readDeclarations(root)).toEqual(nothing)
    await write({ 'index.ts': 'export const other = 1\n' })
    expect(await readDeclarations(root)).toEqual(nothing)
  })

  it.each([
    ['a module that throws', "throw new Error('no such luck')\n", 'cannot be imported: no such luck'],
    ['a module that is missing', "import './nowhere.js'\n", 'cannot be imported'],
    ['plans that are none', 'export const plans = [1]\n', 'of the wrong type'],
    ['graphs that are none', 'export const graphs = { a: {} }\n', 'of the wrong type'],
  ])('refuses %s', async (_, text, message) => {
    await write({ 'index.ts': text })
    await expect(readDeclarations(root)).rejects.toMatchObject({ code: 'specs.run', message: expect.stringContaining(message) })
    expect(await leftovers()).toEqual([])
  })
})
