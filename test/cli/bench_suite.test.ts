/** `heddle bench suite` on the `js` device and by the cost model: suites of a file, their formats, and refused files. */
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { SuiteResult } from '../../src/bench/suite/result.js'
import { heddle, repository } from './host.js'

let root: string
beforeAll(async () => {
  await mkdir(join(repository, '.heddle'), { recursive: true })
  root = await mkdtemp(join(repository, '.heddle', 'suite-'))
  await cp(join(repository, 'test/projects/suite'), root, { recursive: true })
  expect(await heddle(['gen'], root)).toMatchObject({ exitCode: 0 })
})
afterAll(() => rm(root, { recursive: true }))

const write = (file: string, text: string): Promise<void> => writeFile(join(root, file), text)
const run = (...argv: readonly string[]) => heddle(['bench', 'suite', ...argv], root)

const small = `import { defineSuite } from 'heddle'
import { both, first } from './specs/index.js'
export const layers = defineSuite({ plans: ['unfused', first, both], shapes: [{ m: 2, n: 8, k: 16 }], dtypes: ['f32', 'f16'] })
export const ops = defineSuite({ subject: 'add_residual', shapes: [{ m: 2, n: 8 }, { m: 4, n: 8 }], dtypes: ['f32', 'f16'] })
`

test('four plans, five shapes and two types are priced without a device', async () => {
  const { exitCode, out, log } = await run('--predicted', 'h200', '--json')
  expect({ exitCode, log }).toMatchObject({ exitCode: 0 })
  const [result] = JSON.parse(out) as readonly SuiteResult[]
  expect(result).toMatchObject({ suite: 'feed_forward', versus: 'unfused', clock: 'model h200', device: 'h200' })
  expect(result?.cells).toHaveLength(4 * 5 * 2)
  expect(result?.cells[3]).toMatchObject({ plan: 'both', dtype: 'f32', dims: { m: 1, n: 1024, k: 4096 }, launches: 2 })
  const { out: text } = await run('--predicted', 'h200')
  expect(text).toMatch(/both +│ all +│ 0\.\d+ +│ 10 of 10 /)
})

test('the suites of a file are timed on the js device, with prices of a GPU beside', async () => {
  await write('small.ts', small)
  const { exitCode, out, log } = await run('small.ts', '--device', 'js', '--repeats', '2')
  expect({ exitCode, log }).toMatchObject({ exitCode: 0 })
  expect(out).toMatch(/f16 +│ m=2,n=8,k=16 +│ both +│ [\d.]+ +│.* 8\.000 /)
  expect(out).toMatch(/f16 +│ m=4,n=8 +│ add_residual +│/)
  expect(out).toContain('around each step that Node evaluates')
  expect(out).toContain('says nothing about a GPU')
})

const refused: readonly (readonly [what: string, text: string | undefined, message: RegExp])[] = [
  ['that is missing', undefined, /error\[suite\.file\]: there is no file none\.ts/],
  ['without a suite', 'export const shapes = []', /error\[suite\.file\]: none\.ts exports no suite/],
  ['that throws', "throw new Error('why')", /error\[suite\.file\]: none\.ts:1:\d+: none\.ts cannot be imported: why/],
  [
    'with a wrong suite',
    "import { defineSuite } from 'heddle'\nexport default defineSuite({ subject: 'feed_forward', shapes: [] })",
    /error\[suite\.config\]: none\.ts:2:16: suite: shapes/,
  ],
  [
    'with two suites of one name',
    "import { defineSuite } from 'heddle'\nconst of = { subject: 'feed_forward', shapes: [{ m: 1 }] }\nexport const a = defineSuite(of)\nexport const b = defineSuite(of)",
    /two suites called feed_forward/,
  ],
  [
    'with an unknown plan',
    "import { defineSuite } from 'heddle'\nexport default defineSuite({ subject: 'feed_forward', plans: ['fusd'], shapes: [{ m: 1 }] })",
    /error\[plan\.unknown\]: no plan fusd covers feed_forward/,
  ],
  [
    'with an unknown dimension',
    "import { defineSuite } from 'heddle'\nexport default defineSuite({ subject: 'feed_forward', shapes: [{ b: 1 }] })",
    /error\[bench\.shape\]: feed_forward has no dimension b/,
  ],
]
test.each(refused)('a file %s is refused', async (_, text, message) => {
  if (text !== undefined) await write('none.ts', text)
  const { exitCode, log } = await run('none.ts', '--predicted', 'h200')
  expect({ exitCode, log }).toMatchObject({ exitCode: 2, log: expect.stringMatching(message) })
})

test('prices and a device together are refused', async () => {
  expect((await run('--predicted', 'h200', '--device', 'js')).log).toContain('error[suite.price]: --predicted takes no device')
})
