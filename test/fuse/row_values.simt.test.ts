/** Attention that stores values of rows, as emitted source on the CPU device: each main loop equals the bodies of its nodes. */
import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { heddle, projectOf } from '../cli/host.js'

let folder: string
beforeAll(async () => {
  folder = await projectOf('row_values')
  expect(await heddle(['gen'], folder)).toMatchObject({ exitCode: 0 })
})
afterAll(() => rm(folder, { recursive: true }))

const check = async (names: readonly string[]) => {
  const { exitCode, out, log } = await heddle(['check', ...names, '--device', 'simt'], folder)
  return { exitCode, text: `${out}${log}` }
}

it.each([
  ['tiles', 'twice'],
  ['few queries', 'apart'],
  ['three values', 'many'],
  ['rows without keys', 'before'],
])('%s', async (_, name) => {
  const { exitCode, text } = await check([name])
  expect({ exitCode, text }).toMatchObject({ exitCode: 0 })
  expect(text).toContain(`ok   ${name}__f16`)
})
