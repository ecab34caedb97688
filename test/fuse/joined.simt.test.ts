/** Attention with queries and keys in two parts: one kernel joins them as it loads them, and equals the bodies of its nodes. */
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { heddle, projectOf } from '../cli/host.js'

let folder: string
beforeAll(async () => {
  folder = await projectOf('joined')
})
afterAll(() => rm(folder, { recursive: true }))

it('is one kernel, which equals its nodes', async () => {
  expect(await heddle(['gen'], folder)).toMatchObject({ exitCode: 0 })
  expect(await readFile(join(folder, 'generated/cuda/attend_parts__f16.cu'), 'utf8')).toContain('computed_query = true')
  const { exitCode, out, log } = await heddle(['check', 'attend_parts', 'two_parts', '--device', 'simt'], folder)
  expect({ exitCode, text: `${out}${log}` }).toMatchObject({ exitCode: 0 })
  expect(`${out}${log}`).toContain('ok   two_parts one f16')
})

it('with the second part read one place earlier is found', async () => {
  const file = join(folder, 'generated/cuda/attend_parts__f16.cu')
  const text = await readFile(file, 'utf8')
  const wrong = text.replaceAll(
    /\(static_cast<int64_t>\(c\) - u_extent\)/g,
    '(static_cast<int64_t>(c) - u_extent - (c > u_extent))',
  )
  expect(wrong).not.toBe(text)
  await writeFile(file, wrong)
  const { exitCode, out, log } = await heddle(['check', 'attend_parts', '--device', 'simt', '--generated'], folder)
  expect({ exitCode, text: `${out}${log}` }).toMatchObject({ exitCode: 1 })
})
