/**
 * After each edit, `gen` with its cache writes the same as without one, and nothing else: edits of a body, a module that others import, a layout, a
 * plan, a graph, a configuration. In one process, like `watch`.
 */
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { gen } from '../../src/cli/gen.js'

const home = fileURLToPath(new URL('../..', import.meta.url))
let root = ''
const files: Record<string, string> = {
  'factor.ts': 'export const factor = 2\n',
  'scaled.ts': `import { op, tensor } from 'heddle'
import { factor } from './factor.js'
export const scaled = op('scaled', {
  dims: ['n'], inputs: { x: tensor('f32', 'n') }, outputs: { y: tensor('f32', 'n') },
  body: ({ x }) => (c) => ({ y: x(c) * factor }),
})
`,
  'shifted.ts': `import { op, tensor } from 'heddle'
export const shifted = op('shifted', {
  dims: ['n'], inputs: { x: tensor('f32', 'n') }, outputs: { y: tensor('f32', 'n') },
  body: ({ x }) => (c) => ({ y: x(c) + 1 }),
})
`,
  'laid.ts': `import { layout, op, tensor } from 'heddle'
export const turned = layout('turned', ['a', 'b'], { offset: (at, of) => at.b * of.a + at.a })
export const laid = op('laid', {
  dims: ['a', 'b'], inputs: { x: tensor('f32', 'a b', turned) }, outputs: { y: tensor('f32', 'a b') },
  body: ({ x }) => (i, j) => ({ y: x(i, j) - 1 }),
})
`,
  'pair.ts': `import { graph, plan, tensor } from 'heddle'
import { scaled } from './scaled.js'
import { shifted } from './shifted.js'
export const pair = graph('pair', {
  inputs: { x: tensor('f32', 'n') },
  weights: {},
  build: (g, { x }) => {
    const first = g.apply(scaled, { x }).y
    const second = g.apply(shifted, { x: first }).y
    return { nodes: { first, second }, outputs: { y: second } }
  },
})
export const both = plan('both', pair, { groups: { scaled_shifted: ['first', 'second'] } })
`,
  'index.ts': `import { both, pair } from './pair.js'
export { laid } from './laid.js'
export { scaled } from './scaled.js'
export { shifted } from './shifted.js'
export const graphs = { pair }
export const plans = [both]
`,
}
const write = (name: string, text = files[name] ?? '') => writeFile(join(root, 'specs', name), text)

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'heddle-incremental-'))
  for (const folder of ['specs', 'node_modules']) await mkdir(join(root, folder))
  await symlink(home, join(root, 'node_modules/heddle'))
  await writeFile(join(root, 'package.json'), '{ "name": "own", "type": "module" }\n')
  for (const name of Object.keys(files)) await write(name)
})
afterAll(() => rm(root, { recursive: true, force: true }))

const context = () => ({
  root,
  signal: new AbortController().signal,
  verbose: false,
  out: () => undefined,
  log: () => undefined,
})

async function textsIn(folder: string): Promise<Record<string, string>> {
  const names = await readdir(join(root, folder), { recursive: true, encoding: 'utf8' })
  const texts = names.filter((name) => /\.(cu|cpp|json)$/.test(name)).sort()
  return Object.fromEntries(
    await Promise.all(texts.map(async (name) => [name, await readFile(join(root, folder, name), 'utf8')])),
  )
}

/** The kernels that were written. */
async function written(): Promise<string[]> {
  const { changed } = await gen({}, context())
  return changed.filter((name) => name.endsWith('.cu')).map((name) => name.replace(/^cuda\/|(__f32)?\.cu$/g, ''))
}

/** Compares all text with that of a run without a cache: output that an edit failed to update would differ. */
async function holdAll(): Promise<void> {
  process.env.HEDDLE_KEPT = 'off'
  try {
    await gen({ out: 'anew' }, context())
  } finally {
    delete process.env.HEDDLE_KEPT
  }
  expect(await textsIn('generated')).toEqual(await textsIn('anew'))
}

/** The same after an edit of one module. */
async function after(name: string, from: string, to: string): Promise<string[]> {
  const text = files[name] ?? ''
  expect(text).toContain(from)
  files[name] = text.replace(from, to)
  await write(name)
  return written()
}

it('recomputes only what depends on an edit', async () => {
  expect(await written()).toEqual(['laid', 'scaled', 'scaled_shifted', 'shifted'])
  expect(await written()).toEqual([])
  expect(await after('shifted.ts', 'x(c) + 1', 'x(c) + 3')).toEqual(['scaled_shifted', 'shifted'])
  expect(await after('factor.ts', '2', '5')).toEqual(['scaled', 'scaled_shifted'])
  expect(await after('laid.ts', 'at.b * of.a + at.a', 'at.b + of.b * at.a')).toEqual(['laid'])
  expect(await after('pair.ts', 'groups: { scaled_shifted:', 'groups: { in_one:')).toEqual(['in_one', 'scaled_shifted'])
  expect(await after('pair.ts', 'g.apply(shifted, { x: first })', 'g.apply(scaled, { x: first })')).toEqual(['in_one'])
  expect(await after('shifted.ts', 'x(c) + 3', 'x(c) + 4')).toEqual(['shifted'])
  await holdAll()
})

it('continues after an error, and after a module was added and removed', async () => {
  await expect(after('shifted.ts', 'x(c) + 4', 'x(c) + four')).rejects.toMatchObject({ code: 'frontend.rejected' })
  expect(await after('shifted.ts', 'x(c) + four', 'x(c) + 6')).toEqual(['shifted'])
  await write('more.ts', (files['shifted.ts'] ?? '').replaceAll('shifted', 'more'))
  expect(await written()).toEqual(['more'])
  await rm(join(root, 'specs/more.ts'))
  expect(await written()).toEqual(['more'])
  // A module that is imported is another file now.
  await write('factor.js', 'export const factor = 7\n')
  expect(await after('factor.ts', '5', '8')).toEqual(['in_one', 'scaled'])
  await holdAll()
})
