/**
 * A project on a machine with Node alone: no compiler is on the path, and no addon is built or loaded. Ops, graphs and checks run on the device
 * `js`, the templates' programs too; wrong IR, stale source and reads out of bounds are found.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { init } from '../../../src/cli/init.js'
import { tensor as declared, op } from '../../../src/lang/index.js'
import { runOp } from '../../../src/lang/run.js'
import { openDevice, type Tensor, tensor, toNumbers } from '../../../src/runtime/api/index.js'
import { whyJs } from '../../../src/runtime/js/default.js'
import { compare } from '../../../src/verify/compare.js'
import { check } from '../../../src/verify/testing.js'
import { tolerance } from '../../../src/verify/tolerance.js'
import { block } from '../../projects/checked/specs/index.js'
import { bagSum, rmsNorm, shift } from '../../projects/checked/specs/ops.js'
import { heddleIn, linkPackage } from '../../verify/own_project.js'

const home = fileURLToPath(new URL('../../..', import.meta.url))
let work = ''
let root = ''
let cache = ''

beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), 'heddle-js-'))
  cache = join(work, 'cache')
  root = join(work, 'project')
  await mkdir(cache, { mode: 0o700 })
  await cp(join(home, 'test/projects/checked/specs'), join(root, 'specs'), { recursive: true })
  await linkPackage(root)
  await writeFile(join(root, 'package.json'), '{ "name": "own", "type": "module" }\n')
  for (const [name, value] of Object.entries({ PATH: '', CXX: '', HEDDLE_NATIVE: '', HEDDLE_CACHE: cache }))
    vi.stubEnv(name, value)
  expect((await heddleIn(root, 'gen')).code).toBe(0)
})
afterAll(async () => {
  vi.unstubAllEnvs()
  await rm(work, { recursive: true, force: true })
})

const drawn = (count: number, seed: number): number[] => Array.from({ length: count }, (_, i) => Math.sin(i + seed) * 2)

describe('a device without anything installed', () => {
  it('is js, with the reason', async () => {
    const notices: string[] = []
    await using device = await openDevice(undefined, { root, onNotice: (text) => notices.push(text) })
    expect([device.kind, device.info.kind, notices]).toEqual(['js', 'js', [whyJs]])
    expect(device.skipped).toEqual([{ kind: 'simt', reason: whyJs }])
  })

  it.each(['f32', 'f16'] as const)('calls an op in %s', async (dtype) => {
    await using device = await openDevice('js', { root })
    const inputs = { x: tensor(dtype, [3, 33], drawn(99, 1)), gamma: tensor(dtype, [33], drawn(33, 2)) }
    const { y } = await device.call(rmsNorm, inputs, { attrs: { eps: 0.25 } })
    const numbers = Object.entries(inputs).map(([name, given]) => [name, { shape: given.shape, data: toNumbers(given) }] as const)
    const expected = runOp(rmsNorm, Object.fromEntries(numbers), { attrs: { eps: 0.25 } })
    const bound = tolerance({ dtype, class: 'reduction', length: 33, scale: 3 })
    expect(compare(toNumbers(y), expected.y?.data ?? [], bound)).toMatchObject({ passed: true })
    // A twin: the result of another attribute is noticed.
    const other = runOp(rmsNorm, Object.fromEntries(numbers), { attrs: { eps: 0.5 } })
    expect(compare(toNumbers(y), other.y?.data ?? [], bound)).toMatchObject({ passed: false })
  })

  it('runs a graph under each plan, on tensors that stay on the device', async () => {
    await using device = await openDevice('js', { root })
    const weights = {
      weight: tensor('f32', [5, 4], drawn(20, 1)),
      bias: tensor('f32', [5], drawn(5, 2)),
      gamma: tensor('f32', [5], drawn(5, 3)),
    }
    const hidden = await device.upload(tensor('f32', [2, 4], drawn(8, 4)))
    const results: (readonly number[])[] = []
    for (const plan of ['unfused', 'rows', 'epilogue']) {
      const model = await device.load(block, { plan, weights, attrs: { eps: 1e-6 } })
      results.push(Array.from((await model.run({ hidden })).y.data))
    }
    const bound = tolerance({ dtype: 'f32', class: 'reduction', length: 5, scale: 3 })
    for (const result of results.slice(1)) expect(compare(result, results[0] ?? [], bound)).toMatchObject({ passed: true })
    expect(new Set(results[0]).size).toBe(10)
  })

  it('reports a read out of bounds as a fault, with the tensor', async () => {
    await using device = await openDevice('js', { root })
    const given = {
      table: tensor('f32', [2, 3], drawn(6, 1)),
      ids: tensor('i32', [2], [0, 7]),
      offsets: tensor('i32', [2], [0, 2]),
    }
    await expect(device.call(bagSum, given, { dims: { b: 1 } })).rejects.toMatchObject({
      code: 'device.fault',
      message: expect.stringMatching(/bag_sum: table\[7, 0\]/),
    })
  })
})

describe('a check on js', () => {
  it('compares the IR of ops and graphs with bodies, and says so', async () => {
    const { code, out, log } = await heddleIn(root, 'check', '--dtype', 'f32')
    expect([code, log.split('\n').filter((line) => line === whyJs)]).toEqual([0, [whyJs]])
    expect(out).toMatch(
      /^\d{4} passed, 0 failed: on js, which compares the lowered IR with the body; no device ran generated source\n$/,
    )
    expect(log).toMatch(/ok {3}rms_norm__f32: \d+ equal to its body/)
    expect(log).toMatch(/ok {3}block epilogue f32: \d+ equal to its nodes/)
    // A derived kernel is compared in its graph: here its IR would be compared with itself.
    expect(log).not.toContain('product_shift__f32')
  })

  it('finds a body that differs from the IR', async () => {
    const wrong = op('shift', {
      dims: ['m', 'n'],
      types: { T: ['f32', 'f16'] },
      inputs: { x: declared('T', 'm n'), by: declared('T', 'n') },
      outputs: { y: declared('T', 'm n') },
      body:
        ({ x, by }) =>
        (m, c) => ({ y: x(m, c) - by(c) }),
    })
    const report = await check(wrong, { root, device: 'js', dtypes: ['f32'] })
    expect(report.failed).toBeGreaterThan(100)
    expect(report.groups[0]?.failures.at(-1)?.detail).toContain('IR differs from body')
  })

  it('has nothing to compare a derived kernel with', async () => {
    const { code, log } = await heddleIn(root, 'check', 'shift_norm', '--device', 'js', '--dtype', 'f32')
    expect([code, log]).toEqual([2, expect.stringContaining('in a whole graph: name the graph')])
  })

  it('is refused by verbs that need compiled kernels', async () => {
    const { code, log } = await heddleIn(root, 'bench', 'shift', '--device', 'js')
    expect([code, log]).toEqual([2, expect.stringContaining('got js, which evaluates their IR')])
  })
})

it('refuses generated source whose spec has changed since', async () => {
  const file = join(root, 'specs', 'ops.ts')
  const text = await readFile(file, 'utf8')
  try {
    await writeFile(
      file,
      text.replace("by: tensor('T', 'n')", "shiftBy: tensor('T', 'n')").replace('({ x, by })', '({ x, shiftBy: by })'),
    )
    await writeFile(join(root, 'specs', 'index.ts'), 'export {}\n')
    await using device = await openDevice('js', { root })
    const given = { x: tensor('f32', [1, 1], [1]), by: tensor('f32', [1], [2]) }
    await expect(device.call(shift, given)).rejects.toMatchObject({ code: 'library.stale', hint: 'run heddle gen' })
  } finally {
    await writeFile(file, text)
    await cp(join(home, 'test/projects/checked/specs/index.ts'), join(root, 'specs', 'index.ts'))
  }
})

it('refuses a shipped kernel whose op the project hides', async () => {
  const other = join(work, 'ungenerated')
  await cp(root, other, { recursive: true, filter: (path) => !path.endsWith('generated'), verbatimSymlinks: true })
  await using device = await openDevice('js', { root: other })
  const { softmax } = await import('../../../specs/ops/softmax.js')
  const name = Object.keys(softmax.inputs)[0] ?? ''
  const given: Record<string, Tensor> = { [name]: tensor('f32', [1, 2], [1, 2]) }
  await expect(device.call(softmax as never, given as never)).rejects.toMatchObject({
    code: 'library.stale',
    message: expect.stringContaining("the project's own softmax was not generated"),
  })
})

/** Output of Node in a folder, with nothing else on the path. */
const node = (cwd: string, ...args: string[]) =>
  new Promise<{ readonly out: string; readonly log: string; readonly failed: boolean }>((resolve) => {
    const env = { HEDDLE_CACHE: cache, PATH: '' }
    execFile(process.execPath, args, { cwd, env }, (error, out, log) => resolve({ out, log, failed: error !== null }))
  })

it.each(['op', 'model'] as const)('the template for %s starts with Node alone', async (template) => {
  const context = { root: work, signal: new AbortController().signal, log: () => undefined }
  const { folder } = await init(`my-${template}`, { template, install: false }, context)
  await mkdir(join(folder, 'node_modules'))
  await symlink(home, join(folder, 'node_modules', 'heddle'))
  expect(await node(folder, join(home, 'dist/cli.js'), 'gen')).toMatchObject({ failed: false })
  const { out, log, failed } = await node(folder, '--import', 'heddle/register', 'main.ts')
  expect([failed, log.match(/HeddleWarning: no C\+\+ compiler/g)?.length]).toEqual([false, 1])
  expect(out).toMatch(/^on JavaScript \(Node [\d.]+\)[\s\S]*Float32Array/)
})

it('has built no addon', () =>
  expect([existsSync(join(cache, 'addon')), existsSync(join(cache, 'native'))]).toEqual([false, false]))
