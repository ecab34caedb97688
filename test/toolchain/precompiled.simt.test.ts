/** The header that is read once for many sources: the same objects as without it, and never an outdated header. */
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { removeEntry } from '../../src/toolchain/cache.js'
import { compileFiles } from '../../src/toolchain/objects.js'
import { runTool } from '../../src/toolchain/process.js'
import { compileArguments, type Recipe, recipeFor } from '../../src/toolchain/recipe.js'
import { keyFiles } from '../../src/toolchain/sources.js'

const repository = fileURLToPath(new URL('../..', import.meta.url))
const numbers = [1, 2, 3, 4, 5, 6, 7, 8]

let root: string
let recipe: Recipe

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'heddle-precompiled-'))
  await mkdir(join(root, 'include'))
  recipe = { ...(await recipeFor('simt', repository, { optimise: '-O0' })), include: [join(root, 'include')] }
  await writeHeader('inline int common() { return 1; }')
})

afterEach(() => rm(root, { recursive: true, force: true }))

const writeHeader = (text: string): Promise<void> =>
  writeFile(join(root, 'include', 'kernel.cuh'), `#ifndef KERNEL\n#define KERNEL\n${text}\n#endif\n`)

/** Objects of sources that include the header, and their contents. */
async function compiled(cache: string, which: readonly number[], body = 'return common();', before = '') {
  for (const n of which) {
    await writeFile(join(root, `t${n}.cu`), `// Text ${n}\n${before}#include "kernel.cuh"\nint text${n}() { ${body} }\n`)
  }
  const files = await keyFiles(
    recipe,
    which.map((n) => ({ source: `t${n}.cu`, path: join(root, `t${n}.cu`), asItLies: true })),
  )
  const objects = await compileFiles(recipe, files, { cache: join(root, cache) })
  return Promise.all(objects.map(({ object }) => readFile(object, 'base64')))
}

const headersOf = async (cache: string): Promise<readonly string[]> => {
  const folder = join(root, cache, 'headers')
  const names = existsSync(folder) ? await readdir(folder) : []
  return names.filter((name) => !name.startsWith('.')).map((name) => join(folder, name))
}

test('many sources give the same objects as separately, and a few make no header of their own', async () => {
  const together = await compiled('many', numbers)
  const single: string[] = []
  for (const n of numbers) single.push(...(await compiled('few', [n])))
  expect(together).toEqual(single)
  expect(new Set(single).size).toBe(numbers.length)
  const [made = '', ...others] = await headersOf('many')
  expect(others).toEqual([])
  expect(await readdir(made)).toContain('kernel.cuh.gch')
  expect(await headersOf('few')).toEqual([])
  // gcc marks a precompiled header that it uses with an exclamation mark.
  const args = [
    '-include',
    join(made, 'kernel.cuh'),
    '-H',
    ...compileArguments(recipe, join(root, 't1.cu'), [], join(root, 't1.o')),
  ]
  expect((await runTool(recipe.compiler.path, args)).stderr).toContain(`! ${made}/kernel.cuh.gch`)
})

test('other headers before the common one change nothing of that', async () => {
  await writeFile(join(root, 'include', 'other.cuh'), '#include "kernel.cuh"\nstatic const int other = 3;\n')
  await writeHeader('static const int one = 1;\nstatic const int* common() { return &one; }')
  const body = 'return *common() + *&other;'
  const together = await compiled('many', numbers, body, '#include "other.cuh"\n')
  expect(await headersOf('many')).toHaveLength(1)
  expect(await compiled('few', [1], body, '#include "other.cuh"\n')).toEqual(together.slice(0, 1))
})

test('a changed header is read again, by many sources and by one', async () => {
  const before = await compiled('cache', numbers)
  await writeHeader('inline int common() { return 2; }')
  const after = await compiled('cache', numbers)
  after.forEach((object, at) => void expect(object).not.toBe(before[at]))
  expect(await compiled('other', [1])).toEqual(after.slice(0, 1))
  expect(await headersOf('cache')).toHaveLength(2)
})

test('objects are made if the header is missing or gcc rejects it', async () => {
  const texts = await compiled('first', numbers)
  await compiled('cache', numbers, 'return 5;')
  const [made = ''] = await headersOf('cache')
  await writeFile(join(made, 'kernel.cuh.gch'), 'no header of any compiler')
  expect(await compiled('cache', [1])).toEqual(texts.slice(0, 1))
  await removeEntry(made)
  expect(await compiled('cache', [2])).toEqual(texts.slice(1, 2))
  await mkdir(made)
  expect(await compiled('cache', [3])).toEqual(texts.slice(2, 3))
})

test('a refused source is refused for its own error', async () => {
  await expect(compiled('cache', numbers, 'return missing_name;')).rejects.toMatchObject({
    code: 'build.compile',
    message: expect.stringMatching(/8 of 8 files do not compile[\s\S]*t1\.cu:3:[\s\S]*missing_name/),
  })
})
