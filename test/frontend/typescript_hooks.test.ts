/** TypeScript modules in Node with `heddle/register`: modules that its hooks transform, and those that they leave to Node. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { LoadHookContext, ResolveHookContext } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { load, resolve } from '../../src/frontend/typescript_hooks.js'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heddle-hooks-'))
})
afterAll(() => rm(folder, { recursive: true }))

const urlOf = (name: string): string => pathToFileURL(join(folder, name)).href
const from = (parentURL: string): ResolveHookContext => ({
  conditions: [],
  importAttributes: {},
  importAssertions: {},
  parentURL,
})
const context: LoadHookContext = { conditions: [], format: undefined, importAttributes: {}, importAssertions: {} }

/** Node's own resolution where only these specifiers lead anywhere. */
const finds =
  (...known: string[]) =>
  (specifier: string) => {
    if (!known.includes(specifier)) throw new Error(`Cannot find ${specifier}`)
    return { url: urlOf(specifier) }
  }

test('types are stripped, and a map gives the original lines', async () => {
  await writeFile(join(folder, 'main.ts'), 'export const twice = (x: number): number => 2 * x\n')
  const { format, source } = await load(urlOf('main.ts'), context, () => expect.fail('Node was asked'))
  expect(format).toBe('module')
  expect(source).toMatch(/export const twice = \(x\) => 2 \* x;\n\/\/# sourceMappingURL=data:/)
})

test('other files than TypeScript of the project are left to Node', async () => {
  const own = { format: 'module' as const, source: 'own' }
  for (const url of [urlOf('main.js'), urlOf('node_modules/other/main.ts'), 'node:fs', 'data:text/javascript,1']) {
    expect(await load(url, context, () => own)).toBe(own)
  }
})

test('./ops.js is ./ops.ts if there is no such JavaScript file', async () => {
  const parent = from(urlOf('main.ts'))
  expect(await resolve('./ops.js', parent, finds('./ops.ts'))).toEqual({ url: urlOf('./ops.ts') })
  expect(await resolve('./ops.js', parent, finds('./ops.js', './ops.ts'))).toEqual({ url: urlOf('./ops.js') })
  expect(await resolve('../ops.mjs', parent, finds('../ops.mts'))).toEqual({ url: urlOf('../ops.mts') })
})

test('a broken import is reported as it was written', async () => {
  await expect(resolve('./ops.js', from(urlOf('main.ts')), finds())).rejects.toThrow('Cannot find ./ops.js')
  await expect(resolve('./ops.js', from(urlOf('main.js')), finds('./ops.ts'))).rejects.toThrow('Cannot find ./ops.js')
  await expect(resolve('other', from(urlOf('main.ts')), finds())).rejects.toThrow('Cannot find other')
})
