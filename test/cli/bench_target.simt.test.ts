/** `heddle bench NAME` on simt: kernels and graphs of a project that are not shipped, plans side by side, times saved and compared. */
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { BenchTargetResult } from '../../src/cli/bench_target.js'
import { heddle, repository } from './host.js'

let root: string
let programs: string
let laid: string
beforeAll(async () => {
  await mkdir(join(repository, '.heddle'), { recursive: true })
  root = await mkdtemp(join(repository, '.heddle', 'bench-'))
  await cp(join(repository, 'test/projects/mixer/specs'), join(root, 'specs'), { recursive: true })
  const { exitCode, log } = await heddle(['gen'], root)
  expect({ exitCode, log }).toMatchObject({ exitCode: 0 })
  programs = await mkdtemp(join(repository, '.heddle', 'bench-'))
  await cp(join(repository, 'test/projects/program/specs'), join(programs, 'specs'), { recursive: true })
  expect(await heddle(['gen'], programs)).toMatchObject({ exitCode: 0 })
  laid = await mkdtemp(join(tmpdir(), 'heddle-bench-'))
  for (const folder of ['specs', 'node_modules']) await mkdir(join(laid, folder))
  await symlink(repository, join(laid, 'node_modules/heddle'))
  await writeFile(join(laid, 'package.json'), '{ "type": "module" }')
  await writeFile(join(laid, 'specs/index.ts'), overShipped)
  expect(await installed(['gen'], laid)).toMatchObject({ exitCode: 0 })
})
afterAll(() => Promise.all([root, programs, laid].map((each) => rm(each, { recursive: true }))))

/** The installed command, in a separate process: for a project's modules, `heddle/specs` is the package. */
const installed = (argv: readonly string[], cwd: string): Promise<{ exitCode: number; out: string; log: string }> =>
  new Promise((resolve) => {
    const child = execFile(process.execPath, [join(repository, 'dist/cli.js'), ...argv], { cwd }, (_, out, log) =>
      resolve({ exitCode: child.exitCode ?? -1, out, log }),
    )
  })

/** A project's op in a project's layout, followed by a shipped op. */
const overShipped = `import { graph, layout, op, plan, tensor } from 'heddle'
import { addBias } from 'heddle/specs/ops/add_bias.js'
export const turned = layout('turned', ['r', 'c'], { offset: (i, n) => i.c * n.r + i.r })
export const turn = op('turn', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n') },
  outputs: { y: tensor('f32', 'm n', turned) },
  body: ({ x }) => (m, c) => ({ y: x(m, c) }),
})
export const back = op('back', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n', turned) },
  outputs: { y: tensor('f32', 'm n') },
  body: ({ x }) => (m, c) => ({ y: x(m, c) }),
})
export const layer = graph('layer', {
  inputs: { x: tensor('f32', 'm n') },
  weights: { bias: tensor('f32', 'n') },
  typical: { m: 4, n: 8 },
  build: (g, { x }, w) => {
    const there = g.apply(turn, { x }).y
    const again = g.apply(back, { x: there }).y
    const biased = g.apply(addBias, { x: again, bias: w.bias }).y
    return { nodes: { there, again, biased }, outputs: { biased } }
  },
})
export const graphs = { layer }
export const plans = [plan('fused', layer, { groups: { back_bias: ['again', 'biased'] } })]
`

const bench = (...argv: readonly string[]) =>
  heddle(['bench', ...argv, '--device', 'simt', ...(argv.includes('--repeats') ? [] : ['--repeats', '4'])], root)
const small = ['--shape', 'n=2,p=3,w=16,z=24']

async function timed(...argv: readonly string[]): Promise<BenchTargetResult> {
  const { exitCode, out, log } = await bench(...argv, '--json')
  expect({ exitCode, log }).toMatchObject({ exitCode: 0 })
  return JSON.parse(out)
}

test('a graph of the project runs under its plans, with a floor and a prediction', async () => {
  const { kind, subject, sizes } = await timed('mixer', '--plans', 'unfused,folded', ...small, '--shape', 'n=1,p=1,w=8,z=8')
  expect([kind, subject, sizes.length]).toEqual(['graph', 'mixer', 2])
  const [first = [], second = []] = sizes
  expect(first.map(({ plan, launches }) => [plan, launches])).toEqual([
    ['unfused', 6],
    ['folded', 5],
  ])
  expect(second[0]?.dims).toEqual({ n: 1, p: 1, w: 8, z: 8 })
  for (const times of first) {
    expect(times.samples).toHaveLength(4)
    // Two matmuls of 6 rows, 16 and 24 columns; inputs and outputs counted once, in f32.
    expect(times.workload).toEqual({ flops: 2 * 2 * 6 * 16 * 24, bytes: 4 * (2 * 6 * 16 + 16 + 2 * 24 * 16 + 24 + 16) })
    expect(times.floor?.milliseconds).toBeGreaterThan(0)
    expect(times.predicted).toBeGreaterThan(0)
    expect(times.profile.reduce((sum, { count }) => sum + count, 0)).toBe(times.launches)
  }
})

test('an update in place is timed without a copy of what it updates', async () => {
  const { sizes } = await timed('append_step', '--shape', 'r=2,s=3,h=2,d=8,o=1', '--repeats', '2')
  const [[times] = []] = sizes
  expect(times?.profile.map(({ kernel }) => kernel)).toEqual(['append_step__f32'])
  // The new rows are read and stored.
  expect(times?.workload.bytes).toBe(4 * (2 * 2 * 2 * 8 + 1))
})

test('a derived kernel of a plan is timed alone, as text', async () => {
  const { exitCode, out } = await bench('shift_leaky', '--shape', 'm=8,n=16')
  expect({ exitCode, out }).toMatchObject({ exitCode: 2 })
  const { out: table } = await bench('leaky', '--shape', 'r=8,c=16')
  expect(table).toMatch(/leaky__f32 +│ +[\d.]+ +│/)
  expect(table).toMatch(/r=8,c=16/)
  expect(table).toMatch(/Floor: .*\(measured\)/)
})

test('a graph over shipped ops with a layout of the project is timed, with predictions for a GPU, which times on the CPU device do not give', async () => {
  const argv = ['bench', 'layer', '--plans', 'fused', '--device', 'simt', '--repeats', '2']
  const { exitCode, out, log } = await installed(argv, laid)
  expect({ exitCode, log }).toMatchObject({ exitCode: 0 })
  expect(out).toMatch(/h200 us, predicted/)
  // Two launches, each of few bytes.
  expect(out).toMatch(/fused .* 2\.4\d* +│ 2 /)
  expect(out).toContain('says nothing about a GPU')
  const wrong = await installed([...argv, '--plans', 'best-encoder'], laid)
  expect(wrong.log).toContain('error[plan.unknown]: no plan best-encoder covers layer')
})

const later = `import { op, tensor } from 'heddle'
export const later = op('later', {
  dims: ['n'],
  inputs: { x: tensor('f32', 'n') },
  outputs: { y: tensor('f32', 'n') },
  body: ({ x }) => (c) => ({ y: x(c) + 1 }),
})
`

test('a graph without declared sizes, and an unknown dimension, are refused with the option', async () => {
  const unsaid = await bench('pieces')
  expect(unsaid.log).toMatch(/error\[graph\.dim\]: pieces has no usual size of rows, cells, parts\nhint: .*--shape rows=512/)
  const wrong = await bench('mixer', ...small, '--shape', 'b=2')
  expect(wrong.log).toMatch(/error\[bench\.shape\]: mixer has no dimension b\nhint: dimensions are /)
  const unknown = await bench('mixers')
  expect(unknown.log).toMatch(
    /error\[bench\.unknown\]: there is no graph or program mixers, and no kernel mixers in f32\nhint: .*mixer/,
  )
  await writeFile(join(root, 'specs/later.ts'), later)
  const ungenerated = await bench('later')
  await rm(join(root, 'specs/later.ts'))
  expect(ungenerated.log).toContain('the specs have an op later that is not generated: run `heddle gen`')
  const plan = await bench('mixer', '--plans', 'inside,auto')
  expect(plan.log).toMatch(/error\[plan\.unknown\]: no plan auto covers mixer\nhint: .*folded, inside/)
  for (const { exitCode } of [unsaid, wrong, unknown, plan]) expect(exitCode).toBe(2)
})

test('times are saved, and a slower run exits with 1', async () => {
  const file = join(root, 'times.json')
  const argv = ['mix_norm', '--shape', 'r=4,c=32', '--repeats', '20']
  expect((await bench(...argv, '--save', file)).exitCode).toBe(0)
  const kept = JSON.parse(await readFile(file, 'utf8'))
  const scaled = (factor: number) => ({
    ...kept,
    results: [{ ...kept.results[0], samples: kept.results[0].samples.map((time: number) => factor * time) }],
  })
  expect((await bench(...argv, '--repeats', '4', '--baseline', file)).log).toContain('error[bench.repeats]')
  await writeFile(file, JSON.stringify(scaled(1e-3)))
  const slower = await bench(...argv, '--baseline', file)
  expect(slower.exitCode).toBe(1)
  expect(slower.log).toMatch(/error\[bench\.slower\]: slower than .*mix_norm__f32 r=4,c=32/)
  expect(slower.out).toMatch(/^slower: mix_norm__f32 r=4,c=32 takes /m)
  await writeFile(file, JSON.stringify(scaled(1e3)))
  const faster = await bench(...argv, '--baseline', file)
  expect({ exitCode: faster.exitCode, out: faster.out }).toMatchObject({
    exitCode: 0,
    out: expect.stringContaining('\nfaster: '),
  })
})

test('a program runs under every plan that is for it and computes the same, with its states, in a configuration', async () => {
  const run = (...argv: string[]) => heddle(['bench', 'mixers', ...argv, '--device', 'simt', '--repeats', '4'], programs)
  const { exitCode, out, log } = await run('--shape', 'b=2,s=4,n=16', '--config', '{ "layers": 2 }', '--json')
  expect({ exitCode, log }).toMatchObject({ exitCode: 0 })
  const { kind, sizes } = JSON.parse(out) as BenchTargetResult
  expect(kind).toBe('program')
  const [times = []] = sizes
  // Padding is removed and restored in five steps; the state's next value is a result as well, which a copy keeps apart.
  expect(times.map(({ plan, launches }) => [plan, launches])).toEqual([
    ['unfused', 6],
    ['fused', 4],
    ['ragged', 10],
    ['sized', 4],
  ])
  for (const { samples, workload, zeros } of times) {
    expect(samples).toHaveLength(4)
    expect(workload.flops).toBe(2 * 2 * 8 * 16 * 16)
    expect(zeros).toEqual([])
  }
  const wrong = await run('--config', '[2]')
  expect(wrong).toMatchObject({ exitCode: 2 })
  expect((await run('--plans', 'int8')).log).toContain('plan int8 computes with int8, but no scales are given here')
})
