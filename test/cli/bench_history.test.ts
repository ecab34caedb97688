/** `heddle bench history`: the story of the guide, from a saved suite to a regression by name, on prices of a GPU that is not here. */
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { heddle, repository } from './host.js'

let root: string
beforeAll(async () => {
  await mkdir(join(repository, '.heddle'), { recursive: true })
  root = await mkdtemp(join(repository, '.heddle', 'history-'))
  await cp(join(repository, 'test/projects/suite'), root, { recursive: true })
})
afterAll(() => rm(root, { recursive: true }))

const done = async (...argv: readonly string[]): Promise<string> => {
  const { exitCode, out, log } = await heddle(argv, root)
  expect({ argv, exitCode, log }).toMatchObject({ exitCode: 0 })
  return out
}

test('a history that does not exist, or is none, is refused before anything is priced', async () => {
  const none = await heddle(['bench', 'history'], root)
  expect(none).toMatchObject({
    exitCode: 2,
    log: expect.stringContaining('error[suite.history]: bench-history.jsonl has no runs'),
  })
  await done('gen')
  await writeFile(join(root, 'other.jsonl'), '{}')
  const other = await heddle(['bench', 'suite', '--predicted', 'h200', '--save', 'other.jsonl'], root)
  expect(other).toMatchObject({ exitCode: 2, log: expect.stringContaining('other.jsonl:1: ') })
})

test('a changed op is a regression by plan, shape, type and kernel, with an annotation, a page and exit code 1', async () => {
  await done('bench', 'suite', '--predicted', 'h200', '--save')
  await done('bench', 'suite', '--predicted', 'h200', '--save')
  expect(await done('bench', 'history', '--fail-on-regression')).toBe('2 runs of 1 suite, no change\n')
  await cp(join(root, 'gelu.ts'), join(root, 'specs/ops.ts'))
  await done('gen')
  await done('bench', 'suite', '--predicted', 'h200', '--save')
  const out = await done('bench', 'history', '--out', 'history.html')
  expect(out).toMatch(/3 runs of 1 suite, 2 changes/)
  expect(out).toMatch(/slower +│ feed_forward +│ f16 +│ m=4096,n=1024,k=4096 +│ unfused .* bias_squared_relu \(/)
  const page = await readFile(join(root, 'history.html'), 'utf8')
  expect(page).toContain('"opens":"history"')
  const failed = await heddle(['bench', 'history', '--format', 'github', '--fail-on-regression'], root)
  expect(failed.exitCode).toBe(1)
  expect(failed.out).toMatch(
    /^::warning file=bench\.ts,title=heddle bench feed_forward::unfused f16 m=4096,n=1024,k=4096 is slower/,
  )
  expect(failed.log).toMatch(/error\[suite\.slower\]: unfused f16 m=4096,n=1024,k=4096 is slower/)
  const { changes } = JSON.parse(await done('bench', 'history', '--json')) as { readonly changes: readonly unknown[] }
  expect(changes).toHaveLength(2)
})
