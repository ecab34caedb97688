/** `heddle dev` on the `js` device: the page has each save, the results of checks, and the errors of specs. */
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { dev } from '../../src/cli/dev.js'
import { type ExplorerData, explorerSchema } from '../../src/explorer/model.js'
import { repository } from './host.js'

let root = ''
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'heddle-dev-'))
  await mkdir(join(root, 'specs'))
  await mkdir(join(root, 'node_modules'))
  await symlink(repository, join(root, 'node_modules', 'heddle'))
})
afterEach(() => rm(root, { recursive: true, force: true }))

const specs = (by: string): string => `import { op, tensor } from 'heddle'
export const twice = op('twice', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n') },
  outputs: { y: tensor('f32', 'm n') },
  body: ({ x }) => (m, c) => ({ y: x(m, c) * ${by} }),
})
`

it('shows a save: the source that was generated, checks, and errors, and goes on after them', async () => {
  const write = (by: string): Promise<void> => writeFile(join(root, 'specs', 'ops.ts'), specs(by))
  await write('2')
  const stop = new AbortController()
  let log = ''
  const context = {
    ...{ root, signal: stop.signal, verbose: false, out: () => undefined },
    log: (text: string): void => {
      log += text
    },
  }
  const ended = dev(undefined, { device: 'js', dtype: 'f32', predicted: 'h200', port: 0 }, context)
  const urlOf = (): string => /serving (\S+);/.exec(log)?.[1] ?? expect.fail('not served yet')
  const url = await vi.waitFor(urlOf, { timeout: 240_000, interval: 50 })
  const shows = (is: (data: ExplorerData) => void): Promise<ExplorerData> =>
    vi.waitFor(
      async () => {
        const data = explorerSchema.parse(await (await fetch(`${url}data.json`)).json())
        is(data)
        return data
      },
      { timeout: 240_000, interval: 100 },
    )
  const has =
    (state: string, text: RegExp, cuda: string) =>
    ({ live, kernels }: ExplorerData): void => {
      expect(live).toMatchObject({ state, text: expect.stringMatching(text) })
      expect(kernels[0]?.cuda.text).toContain(cuda)
    }
  const first = await shows(has('ready', /ok {3}twice.*\n(.*\n)*.*passed, 0 failed/, '2.0f'))
  expect(first).toMatchObject({ title: 'heddle explore: twice', command: 'heddle dev', opens: 'kernel' })
  await write('3.5')
  const second = await shows(has('ready', /ok {3}twice/, '3.5f'))
  expect(second.kernels[0]?.body).toContain('x(m, c) * 3.5')
  expect(second.live?.version).toBeGreaterThan(first.live?.version ?? 0)
  // The last good source stays beside an error.
  await write('missing')
  await shows(has('failed', /ops\.ts:6:46 [\s\S]*missing/, '3.5f'))
  await write('4.5')
  await shows(has('ready', /ok {3}twice/, '4.5f'))
  stop.abort(new Error('cancelled'))
  await ended
}, 900_000)

it('needs a folder of specs', async () => {
  await rm(join(root, 'specs'), { recursive: true })
  const stop = new AbortController()
  const context = { root, signal: stop.signal, verbose: false, out: () => undefined, log: () => undefined }
  const options = { device: 'js', dtype: 'f32', predicted: 'h200', port: 0 } as const
  await expect(dev(undefined, options, context)).rejects.toMatchObject({ code: 'watch.specs' })
  stop.abort(new Error('cancelled'))
})
