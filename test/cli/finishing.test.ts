/** Verbs whose process ends early, for which Node prints nothing: each is distinguished from one that is done. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { finishing } from '../../src/cli/finishing.js'
import { repository } from './host.js'

let root: string

const node = (argv: readonly string[]): Promise<{ exitCode: number; out: string; log: string }> =>
  new Promise((resolve) => {
    const child = execFile(process.execPath, argv, { cwd: root }, (_, out, log) =>
      resolve({ exitCode: child.exitCode ?? -1, out, log }),
    )
  })

/** A project with a module that waits forever. */
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'heddle-finishing-'))
  await mkdir(join(root, 'node_modules'))
  await symlink(repository, join(root, 'node_modules/heddle'))
  await mkdir(join(root, 'specs'))
  await writeFile(join(root, 'package.json'), '{ "type": "module" }')
  await writeFile(join(root, 'specs/index.ts'), 'await new Promise(() => undefined)\nexport const graphs = {}\n')
})
afterAll(() => rm(root, { recursive: true }))

describe('a verb that waits for a promise that never resolves', () => {
  test.each([['gen'], ['check'], ['plan list']])('%s ends with a typed error, and exit code 3', async (words) => {
    const { exitCode, out, log } = await node([join(repository, 'dist/cli.js'), ...words.split(' ')])
    expect({ exitCode, out }).toEqual({ exitCode: 3, out: '' })
    const [verb] = words.split(' ')
    expect(log).toContain(`error[cli.unfinished]: expected a result of heddle ${verb}, got the end of its process\nhint: `)
  })

  test('reports it as JSON on request', async () => {
    const { exitCode, out } = await node([join(repository, 'dist/cli.js'), 'check', '--json'])
    expect(exitCode).toBe(3)
    expect(JSON.parse(out)).toEqual({ error: expect.objectContaining({ code: 'cli.unfinished' }) })
  })

  // The twin: Node itself sees nothing wrong.
  test('is a success without that', async () => {
    const commands = JSON.stringify(join(repository, 'dist/commands.js'))
    const context = '{ root: process.cwd(), signal: new AbortController().signal, verbose: false, out() {}, log() {} }'
    const script = `import(${commands}).then(({ gen }) => gen({}, ${context})).then(() => console.log('done'))`
    expect(await node(['-e', script])).toEqual({ exitCode: 0, out: '', log: '' })
  })
})

describe('finishing', () => {
  const never = (): void => expect.unreachable()
  test('passes on results and errors', async () => {
    expect(await finishing('heddle gen', async () => 3, never)).toBe(3)
    await expect(finishing('heddle gen', () => Promise.reject(new Error('refused')), never)).rejects.toThrow('refused')
  })
  test('leaves no file', async () => {
    const before = process.listenerCount('beforeExit')
    await finishing('heddle gen', async () => undefined, never)
    expect(process.listenerCount('beforeExit')).toBe(before)
  })
})
