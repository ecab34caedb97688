/** Kernels in the bundle of a project: all of its own, and the shipped ones that it uses. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { bundledKernels, packageRoot, readManifestOf } from '../../src/toolchain/index.js'
import { type TestProject, testProject } from './project.js'

let project: TestProject
beforeAll(async () => {
  // One kernel of its own, and one that replaces a shipped one.
  project = await testProject({ one: 'int one;\n', softmax: 'int softmax;\n' })
})
afterAll(async () => {
  vi.unstubAllEnvs()
  await rm(project.root, { recursive: true, force: true })
})

const packed = async (used: { ops?: readonly string[]; keys?: readonly string[] }) => {
  const found = await bundledKernels(project.root, { ops: used.ops ?? [], keys: used.keys ?? [] })
  if (found === undefined) throw new Error('the project has kernels of its own')
  return found
}
const own = ['one__f32', 'softmax__f32']

test('only its own if it uses no other', async () => {
  const { placed, shipped } = await packed({})
  expect(placed.map(({ entry }) => entry.key)).toEqual(own)
  expect(shipped.kernels).toEqual([])
  expect(shipped.plans).toEqual({})
})

test('every instance of the ops in its graphs, and the instances that a model needs', async () => {
  const { placed, shipped } = await packed({ ops: ['gelu', 'softmax'], keys: ['layer_norm__f32'] })
  const others = ['gelu__bf16', 'gelu__f16', 'gelu__f32', 'layer_norm__f32']
  expect(placed.map(({ entry }) => entry.key)).toEqual([...others, ...own].sort())
  expect(shipped.kernels.map(({ key }) => key)).toEqual(others)
  // A kernel that replaces a shipped one is packed from the project.
  expect(placed.find(({ entry }) => entry.op === 'softmax')?.folder).toContain(project.root)
})

test('derived kernels of graphs whose ops are all packed, and of no others', async () => {
  const { plans = {} } = await readManifestOf(join(packageRoot(), 'generated'))
  const [plan, graphs] = Object.entries(plans)[0] ?? ['', {}]
  const [graph, { nodes }] = Object.entries(graphs)[0] ?? ['', { nodes: [] }]
  const ops = [...new Set(nodes.flatMap((node) => (node.kind === 'op' ? [node.op] : [])))]
  expect(ops.length).toBeGreaterThan(1)
  expect((await packed({ ops })).shipped.plans?.[plan]).toHaveProperty([graph])
  expect((await packed({ ops: ops.slice(1) })).shipped.plans?.[plan] ?? {}).not.toHaveProperty([graph])
})

test('a kernel that nothing has is refused', async () => {
  await expect(packed({ keys: ['nothing__f32'] })).rejects.toMatchObject({ code: 'library.kernel' })
})

test('a project without kernels of its own has no choice', async () => {
  expect(await bundledKernels(packageRoot(), { ops: [], keys: [] })).toBeUndefined()
})
