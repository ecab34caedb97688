/** One search path: a project's own ops, graphs and plans come first, followed by the shipped ones. Nothing here is compiled to machine code. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { ExplorerData } from '../../src/explorer/model.js'
import { searchManifests } from '../../src/toolchain/index.js'
import { repository } from './host.js'

let work: string
let root: string

/** The installed command, in a separate process: for a project's modules, `heddle` is the package, as for a user. */
const heddle = (argv: readonly string[]): Promise<{ exitCode: number; out: string; log: string }> =>
  new Promise((resolve) => {
    const child = execFile(process.execPath, [join(repository, 'dist/cli.js'), ...argv], { cwd: root }, (_, out, log) =>
      resolve({ exitCode: child.exitCode ?? -1, out, log }),
    )
  })

/** Another project below the same `node_modules`. */
async function project(name: string): Promise<void> {
  root = join(work, name)
  await mkdir(join(root, 'specs'), { recursive: true })
  await writeFile(join(root, 'package.json'), '{ "type": "module" }')
}

beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), 'heddle-search-'))
  await mkdir(join(work, 'node_modules'))
  await symlink(repository, join(work, 'node_modules/heddle'))
})
afterAll(() => rm(work, { recursive: true }))

const write = (text: string): Promise<void> => writeFile(join(root, 'specs/index.ts'), text)

const ownOp = (name: string): string => `export const mine = op('${name}', {
  dims: ['m', 'n'],
  types: { T: ['f32'] },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  body: ({ x }) => (m, c) => ({ y: x(m, c) * 3 }),
})
`

/** A graph of an own op and a shipped one, under a plan that makes one kernel of them. */
const mixed = (name = 'triple'): string => `import { graph, op, plan, tensor } from 'heddle'
import { addBias } from 'heddle/specs/ops/add_bias.js'
${ownOp(name)}
export const layer = graph('layer', {
  inputs: { x: tensor('T', 'm n') },
  weights: { bias: tensor('T', 'n') },
  build: (g, { x }, w) => {
    const tripled = g.apply(mine, { x }).y
    const biased = g.apply(addBias, { x: tripled, bias: w.bias }).y
    return { nodes: { tripled, biased }, outputs: { biased } }
  },
})
export const graphs = { any: layer }
export const plans = [plan('together', layer, { groups: { tripled_bias: ['tripled', 'biased'] } })]
`

const keys = async (): Promise<string[]> => {
  const { kernels } = JSON.parse(await readFile(join(root, 'generated/manifest.json'), 'utf8')) as { kernels: { key: string }[] }
  return kernels.map(({ key }) => key)
}

// Each command is a separate process that opens a TypeScript project, which takes seconds, or much longer on a busy machine.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

describe('a project with an op, a graph and a plan', () => {
  beforeAll(async () => {
    await project('mixed')
    await write(mixed())
    const { exitCode, log } = await heddle(['gen'])
    expect(exitCode, log).toBe(0)
    expect(log).toContain('gen: 5 kernels, ')
  })

  test('uses shipped ops by import, alone and in groups; their source is the shipped one', async () => {
    expect(await keys()).toEqual(['add_bias__bf16', 'add_bias__f16', 'add_bias__f32', 'triple__f32', 'tripled_bias__f32'])
    const text = (folder: string) => readFile(join(folder, 'generated/cuda/add_bias__f32.cu'), 'utf8')
    expect(await text(root)).toBe(await text(repository))
  })

  test('has every shipped kernel and plan after its own', async () => {
    const { manifest, folderOf, hidden } = await searchManifests(root)
    const shipped = await searchManifests(repository)
    expect(manifest.kernels).toHaveLength(shipped.manifest.kernels.length + 2)
    expect(Object.keys(manifest.plans ?? {})).toEqual(['together', ...Object.keys(shipped.manifest.plans ?? {})])
    expect(folderOf('triple__f32')).toBe(join(root, 'generated'))
    expect(folderOf('softmax__f32')).toBe(join(repository, 'generated'))
    expect(hidden).toEqual([])
  })

  test('plan show knows its plans and the shipped ones', async () => {
    const own = await heddle(['plan', 'show', 'together', '--graph', 'layer', '--dim', 'm=8,n=16', '--json'])
    expect(own.exitCode, own.log).toBe(0)
    const shipped = await heddle(['plan', 'show', 'best-encoder', '--graph', 'encoder_layer_gelu', '--json'])
    expect(shipped.exitCode, shipped.log).toBe(0)
    expect(JSON.parse(shipped.out)).toMatchObject({ plan: 'best-encoder', graph: 'encoder_layer_gelu' })
  })

  test('explore shows its plan, and the kernels that the plan launches at every stage', async () => {
    const argv = [
      'explore',
      'layer',
      '--plan',
      'together',
      '--compare',
      'unfused',
      '--dim',
      'm=8,n=16',
      '--dtype',
      'f32',
      '--json',
    ]
    const { exitCode, out, log } = await heddle(argv)
    expect(exitCode, log).toBe(0)
    const { opens, plan, kernels, timelines } = JSON.parse(out) as ExplorerData
    expect([opens, plan?.plans.map(({ name, boxes }) => [name, boxes.length])]).toEqual([
      'plan',
      [
        ['together', 1],
        ['unfused', 2],
      ],
    ])
    expect(kernels.map(({ key }) => key)).toEqual(['tripled_bias__f32', 'add_bias__f32', 'triple__f32'])
    expect(kernels.map(({ stages }) => stages.length > 1)).toEqual([true, true, true])
    expect(kernels[2]?.body).toContain("op('triple'")
    expect(timelines.map(({ title }) => title)).toEqual(['layer under together', 'layer under unfused'])
  })

  test('inspects a shipped kernel with its body', async () => {
    const { exitCode, out, log } = await heddle(['inspect', 'layer_norm__f32', '--json'])
    expect(exitCode, log).toBe(0)
    expect(JSON.parse(out).body).toContain("op('layer_norm'")
  })
})

/** Own ops in an own layout, a shipped op and a shipped layout in one graph; and a plan of a shipped graph. */
const laid = `import { graph, layout, op, plan, tensor } from 'heddle'
import { pooler } from 'heddle/specs/graphs/heads.js'
import { addBias } from 'heddle/specs/ops/add_bias.js'
import { splitHeads } from 'heddle/specs/ops/split_heads.js'
export const turned = layout('turned', ['r', 'c'], { offset: (i, n) => i.c * n.r + i.r })
${ownOp('triple').replace("y: tensor('T', 'm n')", "y: tensor('T', 'm n', turned)")}
export const back = op('back', {
  dims: ['m', 'n'],
  types: { T: ['f32'] },
  inputs: { x: tensor('T', 'm n', turned) },
  outputs: { y: tensor('T', 'm n') },
  body: ({ x }) => (m, c) => ({ y: x(m, c) + 1 }),
})
export const layer = graph('layer', {
  inputs: { x: tensor('T', 'b*s h*d') },
  weights: { bias: tensor('T', 'h*d') },
  typical: { b: 1, s: 4, h: 2, d: 4 },
  build: (g, { x }, w) => {
    const tripled = g.apply(mine, { x }).y
    const restored = g.apply(back, { x: tripled }).y
    const biased = g.apply(addBias, { x: restored, bias: w.bias }).y
    const heads = g.apply(splitHeads, { x: g.view(biased, 'b s h d') }).y
    return { nodes: { tripled, restored, biased, heads }, outputs: { heads } }
  },
})
export const graphs = { layer }
export const plans = [
  plan('fused', layer, { groups: { restored_bias: ['restored', 'biased'] } }),
  plan('pooled', pooler, { groups: { dense_bias: ['dense', 'denseBias'] } }),
]
`

describe('a project with its own layouts, over shipped ops and graphs', () => {
  beforeAll(async () => {
    await project('laid')
    await write(laid)
    const { exitCode, log } = await heddle(['gen'])
    expect(exitCode, log).toBe(0)
  })

  test('generates its plan of a shipped graph, without exporting the graph', async () => {
    expect(await keys()).toEqual(expect.arrayContaining(['restored_bias__f32', 'dense_bias__f32', 'split_heads__f32']))
    const { manifest } = await searchManifests(root)
    expect(Object.keys(manifest.plans?.pooled ?? {})).toEqual(['pooler'])
  })

  test('is priced and written out, over both', async () => {
    const launches = async (...argv: readonly string[]): Promise<number> => {
      const { exitCode, out, log } = await heddle(['plan', 'show', ...argv, '--json'])
      expect(exitCode, log).toBe(0)
      return (JSON.parse(out) as { totals: { launches: number } }).totals.launches
    }
    expect(await launches('fused')).toBe(3)
    expect(await launches('pooled')).toBe(4)
    const { exitCode, log } = await heddle(['export', 'layer', '--plan', 'fused', '--target', 'simt', '--out', 'written'])
    expect(exitCode, log).toBe(0)
  })
})

test('a graph that uses a shipped op is refused if the project has another op of the same name', async () => {
  await project('shadow')
  await write(mixed('add_bias'))
  const { exitCode, log } = await heddle(['gen'])
  expect(exitCode).toBe(2)
  expect(log).toContain('specs.shadow')
  expect(log).toContain('graph layer uses the shipped op add_bias')
})

test("a project's op hides a shipped one of the same name, with a note", async () => {
  await project('hiding')
  await write(`import { op, tensor } from 'heddle'\n${ownOp('softmax')}`)
  expect((await heddle(['gen'])).exitCode).toBe(0)
  const { manifest, hidden } = await searchManifests(root)
  expect(manifest.kernels.filter(({ op }) => op === 'softmax').map(({ key }) => key)).toEqual(['softmax__f32'])
  expect(hidden).toEqual(['softmax'])
})

test('an empty folder sees the shipped names', async () => {
  await project('empty')
  await rm(join(root, 'specs'), { recursive: true })
  const { exitCode, out, log } = await heddle(['plan', 'list'])
  expect(exitCode, log).toBe(0)
  expect(out).toContain('best-encoder')
  const shown = await heddle(['plan', 'show', 'best-encoder', '--graph', 'encoder_layer_gelu', '--json'])
  expect(shown.exitCode, shown.log).toBe(0)
})
