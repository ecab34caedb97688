/**
 * Layers of other families, in a separate project: convolutions with the ops after them, windows, many small matrices, packed words, attention by
 * buckets of distance, one kernel for two attentions. Each against its body, and each graph under both of its plans.
 */
import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { check } from '../../src/verify/testing.js'
import { convolve, matrixSums } from '../projects/layers/specs/images.js'
import { heddleIn, ownProject } from './own_project.js'

let root: string

beforeAll(async () => {
  root = await ownProject('layers')
})
afterAll(() => rm(root, { recursive: true, force: true }))

describe('layers of other families', () => {
  it('equal their bodies', async () => {
    const { code, out } = await heddleIn(root, 'check', '--device', 'simt', '--dtype', 'f32', '--json')
    const report = JSON.parse(out)
    expect(report.groups.flatMap((group: { failures: readonly unknown[] }) => group.failures)).toEqual([])
    expect(code).toBe(0)
    expect(report.passed).toBeGreaterThan(2000)
  })

  it('differ from other bodies', async () => {
    const shifted = {
      ...convolve,
      body: () => (b: number, o: number, h: number, w: number) => ({ y: b + o + h + w }),
    }
    expect((await check(shifted, { root, device: 'simt', dtypes: ['f32'] })).failed).toBeGreaterThan(20)
    const swapped = { ...matrixSums, body: () => (b: number) => ({ total: b, squares: b }) }
    expect((await check(swapped, { root, device: 'simt', dtypes: ['f32'] })).failed).toBeGreaterThan(20)
  })
})
