/** `heddle watch`: a change is checked, an error is reported and does not end it, and the signal ends it. */
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { watch } from '../../src/cli/watch.js'

let root = ''
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'heddle-watch-'))
  await mkdir(join(root, 'specs'))
  await mkdir(join(root, 'node_modules'))
  await symlink(process.cwd(), join(root, 'node_modules', 'heddle'))
})
afterEach(() => rm(root, { recursive: true, force: true }))

const op = (name: string, by: string) => `export const ${name} = op('${name}', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n') },
  outputs: { y: tensor('f32', 'm n') },
  body: ({ x }) => (m, c) => ({ y: x(m, c) * ${by} }),
})
`
const specs = (by: string): string => `import { op, tensor } from 'heddle'\n${op('twice', by)}${op('other', '7')}`

it('checks the results of a change, reports errors in one, and continues', async () => {
  await writeFile(join(root, 'specs', 'ops.ts'), specs('2'))
  const stop = new AbortController()
  let text = ''
  const log = (more: string): void => {
    text += more
  }
  const context = { root, signal: stop.signal, verbose: false, out: () => undefined, log }
  const said = (pattern: RegExp) => vi.waitFor(() => expect(text).toMatch(pattern), { timeout: 120_000, interval: 50 })
  const change = async (by: string): Promise<void> => {
    text = ''
    await writeFile(join(root, 'specs', 'ops.ts'), specs(by))
  }
  const watching = watch({}, context)
  await said(/watching/)
  // In the order in which they are ready.
  for (const op of ['other', 'twice']) expect(text).toMatch(new RegExp(`ok {3}${op}[\\s\\S]*\\d+ passed, 0 failed`))

  await change('3')
  await said(/passed, 0 failed/)
  expect(text).toMatch(/ok {3}twice/)
  expect(text).not.toMatch(/other/)

  await change('missing')
  await said(/error\[frontend\.rejected\][\s\S]*ops\.ts:6:46 [\s\S]*missing/)

  // As editors do that never leave half a file: another one takes its place, each time.
  for (const by of ['4', '5', '6']) {
    text = ''
    await writeFile(join(root, 'specs', 'ops.ts~'), specs(by))
    await rename(join(root, 'specs', 'ops.ts~'), join(root, 'specs', 'ops.ts'))
    await said(/ok {3}twice[\s\S]*passed, 0 failed/)
  }
  // A module in a folder that was not there.
  text = ''
  await mkdir(join(root, 'specs', 'more'))
  await writeFile(join(root, 'specs', 'more', 'third.ts'), `import { op, tensor } from 'heddle'\n${op('third', '3')}`)
  await said(/ok {3}third[\s\S]*passed, 0 failed/)
  stop.abort(new Error('cancelled'))
  await watching
})

it('needs a folder of specs', async () => {
  await rm(join(root, 'specs'), { recursive: true })
  const context = { root, signal: new AbortController().signal, verbose: false, out: () => undefined, log: () => undefined }
  await expect(watch({}, context)).rejects.toMatchObject({ code: 'watch.specs' })
})
