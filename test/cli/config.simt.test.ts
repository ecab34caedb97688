/** `heddle config`: its flags compile generated source with a plain compiler; without them it does not compile. */
import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { findCxx, packageRoot } from '../../src/toolchain/index.js'
import { heddleIn } from '../verify/own_project.js'

const folder = join(packageRoot(), 'generated', 'cuda')
const source = join(folder, readdirSync(folder).find((name) => name.endsWith('layer_norm__f32.cu')) ?? '')

/** True if the compiler accepts the source with these words. */
async function accepts(words: readonly string[]): Promise<boolean> {
  const cxx = await findCxx()
  return new Promise((resolve) => {
    execFile(cxx?.path ?? 'c++', ['-fsyntax-only', '-x', 'c++', ...words, source], (error) => resolve(error === null))
  })
}

it('prints what a compiler needs', async () => {
  const { code, out } = await heddleIn('/', 'config', '--flags', '--includes', '--target', 'simt')
  expect(code).toBe(0)
  const words = out.trim().split(' ')
  expect(await accepts(words)).toBe(true)
  expect(await accepts(words.filter((word) => !word.startsWith('-I')))).toBe(false)
})

it('prints both for a program, those of a GPU by default', async () => {
  const { out } = await heddleIn('/', 'config', '--json')
  const { includes, flags } = JSON.parse(out)
  expect([includes.every((path: string) => path.startsWith(packageRoot())), flags]).toEqual([true, ['-std=c++17', '-O3']])
})

it('refuses to print nothing', async () => {
  const { code, log } = await heddleIn('/', 'config')
  expect([code, log]).toEqual([2, expect.stringContaining('give --includes, --flags or --cmake')])
})
