/**
 * Ops of a project with names of the standard library: they are compiled as themselves, never confused with the library's, and refused only if the
 * kernels of both would be generated.
 */
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { manifestSchema } from '../../src/emit/manifest/manifest.js'
import { heddle, repository } from '../cli/host.js'

let root: string
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'heddle-std-'))
  await mkdir(join(root, 'specs'))
  await mkdir(join(root, 'node_modules'))
  await symlink(repository, join(root, 'node_modules/heddle'))
  await writeFile(join(root, 'package.json'), '{ "type": "module" }')
})
afterEach(() => rm(root, { recursive: true }))

/** Two matmuls of one input, each doubled or not by the project's own op, with the given plan. */
const specs = (name: string, plan: string): string => `import { graph, op, plan, tensor } from 'heddle'
export const own = op('${name}', {
  dims: ['m', 'n'],
  types: { T: ['f32'] },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  body: ({ x }) => (m, c) => ({ y: x(m, c) * 2 }),
})
export const layer = graph('layer', {
  inputs: { x: tensor('T', 'm k') },
  weights: { a: tensor('T', 'n k'), b: tensor('T', 'n k') },
  build: (g, { x }, w) => {
    const first = g.matmul('m k, n k -> m n', x, w.a)
    const second = g.matmul('m k, n k -> m n', x, w.b)
    const doubled = g.apply(own, { x: first }).y
    const unread = g.apply(own, { x: second }).y
    return { nodes: { first, second, doubled, unread }, outputs: { doubled, second } }
  },
})
export const graphs = { layer }
export const plans = [plan('mine', layer, ${plan})]
`

const gen = async (text: string) => {
  await writeFile(join(root, 'specs/index.ts'), text)
  return heddle(['gen'], root)
}

async function generated() {
  const { kernels, plans } = manifestSchema.parse(JSON.parse(await readFile(join(root, 'generated/manifest.json'), 'utf8')))
  const nodes = plans?.mine?.layer?.nodes.flatMap((node) => (node.kind === 'op' ? [`${node.name}: ${node.op}`] : []))
  return { keys: kernels.map(({ key }) => key), nodes }
}

const stacked = "{ stacked: { both: ['first', 'second'] }, groups: {} }"

it('an op with the name of a library op is compiled as itself, without a kernel of the library', async () => {
  const { exitCode, log } = await gen(specs('take', '{ groups: { fused: [["first", "doubled"]] } }'))
  expect(exitCode, log).toBe(0)
  expect(await generated()).toEqual({ keys: ['fused__f32', 'take__f32'], nodes: ['unread: take', 'first+doubled: fused'] })
  expect(await readFile(join(root, 'generated/cuda/take__f32.cu'), 'utf8')).toContain('specs/index.ts:2')
})

it("it is refused at its line if a graph runs the library's op as well", async () => {
  const { exitCode, log } = await gen(specs('take', stacked))
  expect(exitCode).not.toBe(0)
  expect(log).toContain('std.name')
  expect(log).toContain('specs/index.ts:2: take has the name of std.take, which is run by layer')
})

it('under another name both are generated', async () => {
  const { exitCode, log } = await gen(specs('doubled', stacked))
  expect(exitCode, log).toBe(0)
  const { keys, nodes } = await generated()
  expect(keys).toEqual(['doubled__f32', 'take__bf16', 'take__f16', 'take__f32'])
  expect(nodes).toEqual(['first: take', 'second: take', 'doubled: doubled', 'unread: doubled'])
  expect(await readFile(join(root, 'generated/cuda/take__f32.cu'), 'utf8')).toContain('src/std/take.ts')
})

it('qualified names of ops are refused', async () => {
  const { exitCode, log } = await gen(specs('std.take', '{ groups: {} }'))
  expect(exitCode).not.toBe(0)
  expect(log).toContain('op name "std.take" is not snake_case')
})
