/** `heddle dev --on`: the page gets the times of the other machine's device after each save, compared with those before it. */
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { dev } from '../../src/cli/dev.js'
import { type ExplorerData, explorerSchema } from '../../src/explorer/model.js'
import { type Far, farMachine } from '../runtime/remote/far.js'
import { repository } from './host.js'

let root = ''
let far: Far
beforeAll(async () => {
  far = await farMachine()
  root = await mkdtemp(join(tmpdir(), 'heddle-dev-on-'))
  await mkdir(join(root, 'specs'))
  await mkdir(join(root, 'node_modules'))
  await symlink(repository, join(root, 'node_modules', 'heddle'))
})
afterAll(() => Promise.all([root, far.home].map((each) => rm(each, { recursive: true, force: true }))))

const specs = (by: string): string => `import { op, tensor } from 'heddle'
export const twice = op('twice', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n') },
  outputs: { y: tensor('f32', 'm n') },
  body: ({ x }) => (m, c) => ({ y: x(m, c) * ${by} }),
})
`

it('times each save on the other machine, without a file and without a reload', async () => {
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
  const options = { device: 'simt', on: far.on, dtype: 'f32', predicted: 'h200', port: 0, dims: { m: 8, n: 64 } } as const
  const ended = dev(undefined, options, context)
  const urlOf = (): string => /serving (\S+);/.exec(log)?.[1] ?? expect.fail('not served yet')
  const url = await vi.waitFor(urlOf, { timeout: 240_000, interval: 50 })
  const shows = (is: (data: ExplorerData) => void): Promise<ExplorerData> =>
    vi.waitFor(
      async () => {
        const data = explorerSchema.parse(await (await fetch(`${url}data.json`)).json())
        expect(data.live?.state, `${data.live?.text}${log}`).toBe('ready')
        is(data)
        return data
      },
      { timeout: 240_000, interval: 100 },
    )
  const first = await shows(({ bench }) => expect(bench?.runs).toHaveLength(1))
  expect(first.bench?.runs[0]).toMatchObject({ file: `now, on ${far.on}`, rows: [{ name: 'twice', shape: 'm=8 n=64' }] })
  expect(first.live?.text).toMatch(/ok {3}twice: \d+ equal to its body/)
  await write('3.5')
  const second = await shows(({ bench }) => expect(bench?.runs).toHaveLength(2))
  expect(second.bench?.runs.map(({ file }) => file)).toEqual(['before the save', `now, on ${far.on}`])
  expect(second.bench?.comparisons).toMatchObject([{ name: 'twice' }])
  expect(second.live?.version).toBeGreaterThan(first.live?.version ?? 0)
  stop.abort(new Error('cancelled'))
  await ended
}, 900_000)
