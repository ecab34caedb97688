/** `heddle check` of programs: results that it accepts under every plan, run after run, and faults that it must find. */
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openKernels } from '../../src/runtime/open.js'
import { checkProgram } from '../../src/verify/check/programs.js'
import { readKernels } from '../../src/verify/check/specs.js'
import { subjectsOf } from '../../src/verify/check/subjects.js'
import { check } from '../../src/verify/testing.js'
import { stack } from '../projects/stack/specs/index.js'
import { heddleIn, ownProject } from './own_project.js'

const roots: string[] = []
let own: string
beforeAll(async () => {
  own = await ownProject('stack')
  roots.push(own)
})
afterAll(() => Promise.all(roots.map((root) => rm(root, { recursive: true, force: true }))))

const f32 = ['--device', 'simt', '--dtype', 'f32'] as const
type Group = { readonly kind: string; readonly name: string; readonly passed: number; readonly failures: readonly unknown[] }

describe('forty lines', () => {
  it('are checked with their state under both plans, and by their declaration too', async () => {
    const text = await readFile(join(own, 'specs/index.ts'), 'utf8')
    expect(text.split('\n').length).toBeLessThanOrEqual(41)
    const { code, out } = await heddleIn(own, 'check', '--filter', '^stack ', ...f32, '--json')
    const { groups } = JSON.parse(out) as { groups: Group[] }
    expect(code).toBe(0)
    const programs = groups.filter(({ kind }) => kind === 'program')
    expect(programs.map(({ name, passed }) => `${name} ${passed}`)).toEqual(['stack unfused f32 8', 'stack fused f32 8'])
    const report = await check(stack, { root: own, device: 'simt', dtypes: ['f32'], plan: 'fused' })
    expect(report).toMatchObject({ failed: 0 })
    expect(report.groups.map(({ name }) => name)).toEqual(['matmul_mix__f32', 'stack fused f32'])
  })

  it('are found wrong if the device forgets its state, or swaps the weights of two layers', async () => {
    expect((await heddleIn(own, 'gen')).code).toBe(0)
    const specs = await readKernels(own)
    const subject = subjectsOf(specs).programs.find(({ plan }) => plan === 'unfused') ?? expect.fail('no program')
    const { device, library, manifest } = await openKernels('simt', { root: own })
    try {
      const stage = { device, library, manifest, layouts: {}, ops: specs.ops }
      const failures = async (compiled: typeof subject.compiled): Promise<string[]> => {
        const results = await checkProgram(stage, { ...subject, compiled }, 'f32')
        return results.filter(({ passed }) => !passed).map(({ name }) => name.replace(/^.* run/, 'run'))
      }
      const { compiled } = subject
      expect(await failures(compiled)).toEqual([])
      // The first run returns the right result, and the second starts from zeros again.
      const forgetful = { ...compiled, states: { memory: { cleared: true } } }
      expect(new Set(await failures(forgetful))).toEqual(new Set(['run 1', 'run 2']))
      const [first, second, ...rest] = compiled.steps
      if (first === undefined || second === undefined) return expect.fail('no layers')
      const swapped = [{ ...first, weights: second.weights }, { ...second, weights: first.weights }, ...rest]
      // A product of one element may vanish in either order.
      expect((await failures({ ...compiled, steps: swapped })).length).toBeGreaterThanOrEqual(6)
    } finally {
      device.close()
    }
  })

  it('are found wrong if one of their kernels is, under the plan that runs it', async () => {
    expect((await heddleIn(own, 'gen')).code).toBe(0)
    const file = join(own, 'generated/cuda/mix__f32.cu')
    const text = await readFile(file, 'utf8')
    const wrong = text.replace(/0\.5f|\/ 2\.0f/, (found) => (found === '0.5f' ? '0.25f' : '/ 4.0f'))
    expect(wrong).not.toBe(text)
    await writeFile(file, wrong)
    const { code, log } = await heddleIn(own, 'check', '--generated', '--filter', '^stack', ...f32)
    expect(code).toBe(1)
    expect(log).toMatch(/FAIL stack unfused f32: 8 of 8 differ/)
    expect(log).toMatch(/ok {3}stack fused f32/)
  })
})

it('packed rows, ids, flags and states that are not floats are checked on rows of tokens', async () => {
  const root = await ownProject('program')
  roots.push(root)
  const { code, out, log } = await heddleIn(root, 'check', '--filter', '^(mixers|tagger) ', ...f32, '--json')
  const { groups } = JSON.parse(out) as { groups: Group[] }
  expect(groups.flatMap(({ failures }) => failures)).toEqual([])
  expect(code, log).toBe(0)
  const names = groups.map(({ name }) => name).sort()
  const plans = ['fused', 'ragged', 'sized', 'unfused']
  expect(names).toEqual(['mixers', 'tagger'].flatMap((of) => plans.map((plan) => `${of} ${plan} f32`)))
})

it('queries without keys have no weights if a plan makes attention one kernel, in graphs and in programs', async () => {
  const root = await ownProject('unattended')
  roots.push(root)
  const { out, log } = await heddleIn(root, 'check', ...f32, '--json')
  const { groups } = JSON.parse(out) as { groups: Group[] }
  expect(
    groups.flatMap(({ name, failures }) => (failures.length === 0 ? [] : name)),
    log,
  ).toEqual([])
  const wholes = groups.filter(({ kind }) => kind === 'graph' || kind === 'program').map(({ kind, name }) => `${kind} ${name}`)
  expect(wholes.sort()).toEqual([
    'graph attend searched f32',
    'graph attend unfused f32',
    'graph attend written f32',
    'program twice searched f32',
    'program twice unfused f32',
    'program twice written f32',
  ])
  // Without the rule the same kernels are found wrong.
  expect((await heddleIn(root, 'gen')).code).toBe(0)
  const specs = await readKernels(root)
  const subject = subjectsOf(specs).programs.find(({ plan }) => plan === 'written') ?? expect.fail('no program')
  expect(subject.groups).toHaveLength(2)
  const { device, library, manifest } = await openKernels('simt', { root })
  try {
    const stage = { device, library, manifest, layouts: {}, ops: specs.ops }
    const passed = async (groups: typeof subject.groups): Promise<boolean> =>
      (await checkProgram(stage, { ...subject, groups }, 'f32')).every((result) => result.passed)
    expect([await passed(subject.groups), await passed([])]).toEqual([true, false])
  } finally {
    device.close()
  }
})
