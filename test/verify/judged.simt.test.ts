/** Results that `heddle check` must not report as wrong, and those that it must. */
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readKernels } from '../../src/verify/check/specs.js'
import { subjectsOf } from '../../src/verify/check/subjects.js'
import { type CheckReport, check } from '../../src/verify/testing.js'
import { fakeQuant, soft, turn } from '../projects/judged/specs/index.js'
import { inTurn } from '../turns.js'
import { heddleIn, ownProject } from './own_project.js'

let root: string
beforeAll(async () => {
  root = await ownProject('judged')
})
afterAll(() => rm(root, { recursive: true, force: true }))

const options = () => ({ root, device: 'simt' as const, dtypes: ['f32' as const] })

describe('a check', () => {
  it('passes results at the limit of float32, NaN from the body, and graphs with integers', async () => {
    const { kernels, graphs } = subjectsOf(await readKernels(root))
    const all = [...new Set([...kernels, ...graphs].map(({ name }) => name))]
    const { code, out } = await heddleIn(root, 'check', ...inTurn(all), '--device', 'simt', '--json')
    const report = JSON.parse(out)
    expect(report.groups.flatMap((group: { failures: readonly unknown[] }) => group.failures)).toEqual([])
    expect(code).toBe(0)
    const names = report.groups.map(({ name }: { name: string }) => name)
    const tried = [
      'padded unfused f16',
      'padded whole f16',
      'far_attention__f32',
      'masked one f16',
      'losses one f16',
      'losses unfused f32',
      'turn',
      'returns',
      'repeated',
    ]
    const wanted = tried.filter((name) => inTurn(all).includes(name.replace(/ .*|__.*/, '')))
    expect(names).toEqual(expect.arrayContaining(wanted))
    expect(tried.filter((name) => !all.includes(name.replace(/ .*|__.*/, '')))).toEqual([])
  })

  it('fails the same ops with other bodies', async () => {
    const half = { ...fakeQuant, body: () => (_r: number) => ({ y: (_c: number) => 0.5 }) }
    expect((await check(half, options())).failed).toBeGreaterThan(100)
    const still = { ...turn, body: () => (_i: number, _j: number) => ({ y: 1 }) }
    expect((await check(still, options())).failed).toBeGreaterThan(100)
    const nowhere = { ...soft, body: () => (_m: number) => ({ y: (_c: number) => Number.NaN }) }
    const { groups } = await check(nowhere, options())
    expect(groups[0]?.failures[0]?.detail).toContain('expected NaN')
  })

  it('fails attention whose slopes are a little steeper', async () => {
    expect((await heddleIn(root, 'gen')).code).toBe(0)
    const file = join(root, 'generated/cuda/steep_attention__f32.cu')
    const text = await readFile(file, 'utf8')
    const wrong = text.replace(/static_cast<float>\(abs\(([^()]*)\)\)/, '(1.0001f * static_cast<float>(abs($1)))')
    expect(wrong).not.toBe(text)
    await writeFile(file, wrong)
    const { code, log } = await heddleIn(root, 'check', 'steep_attention', '--generated', '--device', 'simt')
    expect(code).toBe(1)
    expect(log).toContain('FAIL steep_attention__f32')
  })

  it('fails attention near -10000 with slightly different scores', async () => {
    expect((await heddleIn(root, 'gen')).code).toBe(0)
    const file = join(root, 'generated/cuda/padded_attention__f16.cu')
    const text = await readFile(file, 'utf8')
    const wrong = text.replace('(raw * by)', '(raw * by * 1.05f)')
    expect(wrong).not.toBe(text)
    await writeFile(file, wrong)
    const { code, log } = await heddleIn(root, 'check', 'padded_attention', '--generated', '--device', 'simt')
    expect(code).toBe(1)
    expect(log).toContain('FAIL padded_attention__f16')
  })

  it('tries extents that are multiples of 128 at their minimum, and reports those that it cannot try as not run', async () => {
    const scaled = (name: string, block: number) => `export const ${name} = op('${name}', {
  dims: ['n', 'k', 'a', 'b'],
  inputs: { x: tensor('f32', 'n k'), scale: tensor('f32', 'a b') },
  outputs: { y: tensor('f32', 'n k') },
  facts: { n: '${block}*a', k: '${block}*b' },
  body: ({ x, scale }) => (i, j) => ({ y: x(i, j) * scale(idiv(i, ${block}), idiv(j, ${block})) }),
})
`
    const text = `import { idiv, op, tensor } from 'heddle'\n${scaled('scaled', 128)}${scaled('beyond', 2048)}`
    await writeFile(join(root, 'specs/blocks.ts'), text)
    const { code, out, log } = await heddleIn(root, 'check', 'scaled', 'beyond', '--device', 'simt', '--json')
    await rm(join(root, 'specs/blocks.ts'))
    expect(code).toBe(2)
    const { groups, failed, untried } = JSON.parse(out) as CheckReport
    expect([failed, untried]).toEqual([0, 1])
    expect(groups.map(({ name, tried, passed, untried: why }) => [name, passed, tried > 0, why])).toEqual([
      ['beyond', 0, false, expect.stringContaining('specs/blocks.ts:')],
      ['scaled', expect.any(Number), true, undefined],
    ])
    expect(groups.find(({ name }) => name === 'scaled')?.tried).toBeGreaterThanOrEqual(10)
    expect(log).toMatch(/ok {3}scaled: [1-9]\d* equal to its body/)
    expect(log).toContain('none beyond: not tried')
    expect(log).toContain('of its least sizes, n=2048 k=2048 a=1 b=1, a buffer has 4194304 elements')
    expect(log).not.toMatch(/ok .*: 0 equal/)
  })

  it('names the relation of extents that a body assumes, and fails reads out of bounds', async () => {
    const halves = (facts: string) => `export const halves = op('halves', {
  dims: ['m', 'n', 'n2'],
  inputs: { x: tensor('f32', 'm n2') },
  outputs: { y: tensor('f32', 'm n') },${facts}
  body: ({ x }, { n }) => (m, c) => ({ y: x(m, c + 0) * x(m, c + n) }),
})
`
    const beyond = `export const beyond = op('beyond', {
  dims: ['m'],
  inputs: { x: tensor('f32', 'm') },
  outputs: { y: tensor('f32', 'm') },
  body: ({ x }) => (m) => ({ y: x(m + 1) }),
})
`
    const checked = async (text: string) => {
      await writeFile(join(root, 'specs/halves.ts'), `import { op, tensor } from 'heddle'\n${text}`)
      const names = ['halves', 'beyond'].filter((name) => text.includes(`op('${name}'`))
      const result = await heddleIn(root, 'check', ...names, '--device', 'simt', '--no-nvcc')
      await rm(join(root, 'specs/halves.ts'))
      return result
    }
    const unstated = await checked(halves(''))
    expect(unstated.code).toBe(2)
    expect(unstated.out).toContain('0 passed, 0 failed, 1 not tried')
    expect(unstated.log).toContain('none halves: not tried')
    expect(unstated.log).toContain(
      "specs/halves.ts:2: x[0, 1] is outside its shape (1, 1): halves reads x as if n2 were 2*n, which no fact says; state it on the op: facts: { n2: '2*n' }",
    )
    const stated = await checked(halves("\n  facts: { n2: '2*n' },"))
    expect([stated.code, stated.out]).toEqual([0, expect.stringMatching(/^[1-9]\d* passed, 0 failed\n$/)])
    const wrong = await checked(beyond)
    expect([wrong.code, wrong.log]).toEqual([1, expect.stringContaining('FAIL beyond: not run')])
  })

  it('states why something could not run, with the repair', async () => {
    await writeFile(
      join(root, 'specs/same.ts'),
      `import { op, tensor } from 'heddle'
export const same = op('same', {
  dims: ['m', 'n'],
  inputs: { a: tensor('i32', 'm'), b: tensor('i32', 'n') },
  outputs: { y: tensor('f32', 'm n') },
  body: ({ a, b }) => (m, c) => ({ y: a(m) === b(c) ? 1 : 0 }),
})
`,
    )
    const { code, log } = await heddleIn(root, 'check', 'same', '--device', 'simt')
    await rm(join(root, 'specs/same.ts'))
    expect(code).toBe(2)
    expect(log).toContain('none same: not tried')
    expect(log).toContain("reads integers whose values no fact states: a; state it on the op: facts: { a: { index: 'n' } }")
    expect(log).not.toContain('npx heddle repro')
  })
})
