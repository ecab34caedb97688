/**
 * Kernels of common kinds, in a project of its own: hashes, optimisers, norms and losses with gradients, gates, quantisers, sampling and sequences.
 * Each is checked against its body at many sizes; test/verify/asked checks them against plain JavaScript.
 */
import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { check } from '../../src/verify/testing.js'
import { murmur } from '../projects/recipes/specs/hashes.js'
import { heddleIn, ownProject } from './own_project.js'

let root: string

beforeAll(async () => {
  root = await ownProject('recipes')
})
afterAll(() => rm(root, { recursive: true, force: true }))

describe('recipes', () => {
  it('equal their bodies', async () => {
    const { code, out } = await heddleIn(root, 'check', '--device', 'simt', '--dtype', 'f32', '--json')
    const report = JSON.parse(out)
    expect(report.groups.flatMap((group: { failures: readonly unknown[] }) => group.failures)).toEqual([])
    expect(code).toBe(0)
    expect(report.passed).toBeGreaterThan(4000)
  })
  it('differ from other bodies', async () => {
    const still = { ...murmur, body: () => (_c: number) => ({ hash: 0 }) }
    expect((await check(still, { root, device: 'simt', dtypes: ['f32'] })).failed).toBeGreaterThan(20)
  })
})
