/**
 * A folder without specs and without heddle: shipped programs can be exported from it, and verbs that need their bodies report that they are
 * missing.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { heddle } from './host.js'

let root: string
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'heddle-bare-'))
})
afterAll(() => rm(root, { recursive: true }))

it('exports a shipped kernel', async () => {
  expect(await heddle(['export', 'rms_norm', '--out', 'out', '--target', 'simt'], root)).toMatchObject({ exitCode: 0 })
})

it('shows no plan, for want of the package', async () => {
  const { exitCode, log } = await heddle(['plan', 'show', 'ft-v1'], root)
  expect(exitCode).toBe(2)
  expect(log).toContain('"heddle" cannot be imported from')
})
