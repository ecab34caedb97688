/** `heddle check` and `heddle/testing` on a separate project: results that it accepts, and faults that it must find. */
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { check } from '../../src/verify/testing.js'
import { block } from '../projects/checked/specs/index.js'
import { rmsNorm, rowLoss, shift, softmax } from '../projects/checked/specs/ops.js'
import { heddleIn, ownProject } from './own_project.js'

let root: string

beforeAll(async () => {
  root = await ownProject('checked')
})
afterAll(() => rm(root, { recursive: true, force: true }))

const heddle = (...argv: string[]) => heddleIn(root, ...argv)

const options = () => ({ root, device: 'simt' as const, dtypes: ['f32' as const] })

describe('check of a project', () => {
  it('checks an op with labels, a bag of ids by offsets, and its graph under two plans', async () => {
    const { code, out } = await heddle('check', '--device', 'simt', '--dtype', 'f32', '--json')
    const report = JSON.parse(out)
    expect(report.groups.flatMap((group: { failures: readonly unknown[] }) => group.failures)).toEqual([])
    expect(code).toBe(0)
    const names = report.groups.map(({ kind, name, against }: Record<string, string>) => `${kind} ${name} ${against}`)
    expect(names.sort()).toEqual(
      [
        'op bag_sum__f32 body',
        'op rms_norm__f32 body',
        'op row_loss__f32 body',
        'op shift__f32 body',
        'op softmax__f32 body',
        'derived product_shift__f32 nodes',
        'derived shift_norm__f32 nodes',
        'graph block unfused f32 nodes',
        'graph block rows f32 nodes',
        'graph block epilogue f32 nodes',
      ].sort(),
    )
    expect(report.passed).toBeGreaterThan(1500)
  })

  it('finds source that does not match its op', async () => {
    expect((await heddle('gen')).code).toBe(0)
    const file = join(root, 'generated/cuda/shift__f32.cu')
    const text = await readFile(file, 'utf8')
    const wrong = text.replace(/(x_\w*|[\w.[\]()]+) \+ ((?:heddle::read\()?by_?\w*)/g, '$1 - $2')
    expect(wrong).not.toBe(text)
    const asGenerated = () => heddle('check', 'shift', '--generated', '--device', 'simt', '--dtype', 'f32')
    expect((await asGenerated()).code).toBe(0)
    await writeFile(file, wrong)
    const { code, log } = await asGenerated()
    expect(code).toBe(1)
    expect(log).toContain('FAIL shift__f32')
    expect(log).toContain('npx heddle repro shift --case "shift__f32 m=1 n=1 integer" --device simt --generated')
    // The specs are restored: their results are right again.
    expect((await heddle('check', 'shift', '--device', 'simt', '--dtype', 'f32')).code).toBe(0)
  })

  it('exits with 2 and the available names if nothing is selected', async () => {
    const named = await heddle('check', 'softmaxx', '--device', 'simt')
    expect(named.code).toBe(2)
    expect(named.log).toContain('there is no op, derived kernel, graph or program softmaxx')
    expect(named.log).toContain('row_loss')
    const filtered = await heddle('check', '--filter', 'nothing_like_it', '--device', 'simt')
    expect(filtered.code).toBe(2)
    expect(filtered.log).toContain('nothing is selected by /nothing_like_it/')
    const selftest = await heddle('selftest', '--filter', 'nothing_like_it', '--device', 'simt')
    expect(selftest.code).toBe(2)
    expect(selftest.log).toContain('no check has a name that matches /nothing_like_it/')
  })
})

describe('check of heddle/testing', () => {
  it('checks an op with the name of a shipped one against its own body', async () => {
    expect(await check(softmax, options())).toMatchObject({ failed: 0, groups: [{ name: 'softmax__f32', against: 'body' }] })
  })

  it('ends with the error of the machine, and reports no kernel as wrong for it', async () => {
    const file = join(root, 'no-folder')
    await writeFile(file, '')
    vi.stubEnv('HEDDLE_CACHE', file)
    try {
      const { code, out, log } = await heddle('check', 'shift', '--device', 'simt', '--dtype', 'f32')
      expect({ code, out }).toEqual({ code: 3, out: '' })
      expect(log).toContain(`error[cache.write]: cannot write ${file}`)
      expect(log).not.toContain('FAIL')
    } finally {
      vi.unstubAllEnvs()
    }
  })

  it('finds a body that its kernel does not compute', async () => {
    const other = { ...softmax, body: () => (_row: number) => ({ y: () => 0 }) }
    const { failed, groups } = await check(other, options())
    expect(failed).toBeGreaterThan(100)
    expect(groups[0]?.failures[0]?.detail).toContain('IR differs from body')
    const labels = { ...rowLoss, body: () => (_row: number) => ({ loss: 1 }) }
    expect((await check(labels, options())).failed).toBeGreaterThan(100)
  })

  it('checks a graph under one plan', async () => {
    const { failed, groups } = await check(block, { ...options(), plan: 'rows' })
    expect(failed).toBe(0)
    expect(groups.map(({ name }) => name)).toEqual(['shift_norm__f32', 'block rows f32'])
  })

  it('reports what it cannot check', async () => {
    await expect(check(block, { ...options(), plan: 'none' })).rejects.toThrow('nothing is selected by block, plan none')
    await expect(check({ ...rmsNorm, name: 'unheard_of' }, options())).rejects.toThrow(
      'there is no op, derived kernel, graph or program unheard_of',
    )
    await expect(check(shift, { ...options(), plan: 'rows' })).rejects.toThrow('shift is an op, which no plan is for')
  })
})
