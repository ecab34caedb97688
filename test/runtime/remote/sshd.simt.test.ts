/** Verbs through a real sshd on loopback, as another user: they say what they say here, and leave the cache alone behind. The CPU device is on both ends. */

import { cp, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { heddle, repository } from '../../cli/host.js'
import { shapeOf } from './far.js'
import { type Sshd, startSshd, whyNoSshd } from './sshd.js'

const why = await whyNoSshd()

describe.skipIf(why !== undefined)(`behind sshd on loopback${why === undefined ? '' : `, left out: ${why}`}`, () => {
  let root: string
  let far: Sshd
  beforeAll(async () => {
    await mkdir(join(repository, '.heddle'), { recursive: true })
    root = await mkdtemp(join(repository, '.heddle', 'sshd-'))
    await cp(join(repository, 'test/projects/mixer/specs'), join(root, 'specs'), { recursive: true })
    expect(await heddle(['gen'], root)).toMatchObject({ exitCode: 0 })
    far = await startSshd()
  })
  afterAll(async () => {
    await far.stop()
    await rm(root, { recursive: true })
  })

  const size = ['--shape', 'rows=2,cells=8,parts=2', '--device', 'simt']

  test('doctor, check, bench and search say what they say here, and no port is opened', async () => {
    const seen = new Set<string>()
    const watch = new AbortController()
    const watching = (async () => {
      while (!watch.signal.aborted) {
        for (const port of await far.ports()) seen.add(port)
        await sleep(50)
      }
    })()
    const on = ['--on', far.on]
    const doctor = await heddle(['doctor', ...on])
    expect(doctor, doctor.log).toMatchObject({ exitCode: 0 })
    expect(doctor.out).toContain(join(far.home, '.cache/heddle/remote'))
    const argv = ['check', 'shift', '--dtype', 'f32', '--device', 'simt', '--no-nvcc']
    const [here, there] = [await heddle(argv, root), await heddle([...argv, ...on], root)]
    expect(there).toMatchObject({ exitCode: 0, out: here.out })
    expect(shapeOf(there.log)).toEqual(shapeOf(here.log))
    const bench = ['bench', 'pieces', ...size, '--repeats', '2']
    const timed = await heddle([...bench, ...on], root)
    expect(timed, timed.log).toMatchObject({ exitCode: 0 })
    expect(timed.out).toMatch(/│ unfused +│ [\d.]+ +│/)
    const search = ['search', 'pieces', ...size, '--dtype', 'f32', '--minutes', '1', '--repeats', '2']
    const searched = await heddle([...search, ...on], root)
    expect(searched, searched.log).toMatchObject({ exitCode: 0 })
    expect(searched.out).toMatch(/\d+ of \d+ launches measured/)
    watch.abort()
    await watching
    expect([...seen]).toEqual([])
  })

  test('nothing is left behind but the cache', async () => {
    for (let attempt = 0; attempt < 100 && (await far.processes()).length > 0; attempt++) await sleep(100)
    expect(await far.processes()).toEqual([])
    expect(await readdir(far.home)).toEqual(['.cache'])
    expect((await readdir(join(far.home, '.cache/heddle/remote'))).map((name) => name.replace(/-.*/, '')).sort()).toEqual([
      'agent',
      'native',
      'node',
      'sent',
    ])
  })

  test('a wrong host key is refused', async () => {
    const { exitCode, log } = await heddle(['doctor', '--on', far.on.replace('ssh ', 'ssh -o UserKnownHostsFile=/dev/null ')])
    expect({ exitCode, log }).toEqual({ exitCode: 3, log: expect.stringContaining('error[remote.stranger]') })
  })
})

test('ports and processes of a user are seen', async () => {
  const { portsOf, processesOf } = await import('./sshd.js')
  const uid = String(process.getuid?.())
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port.toString(16).toUpperCase().padStart(4, '0') : ''
  expect(await portsOf(uid)).toContain(`0100007F:${port}`)
  await new Promise((resolve) => server.close(resolve))
  expect(await portsOf(uid)).not.toContain(`0100007F:${port}`)
  expect((await processesOf(uid)).some((line) => line.includes('node'))).toBe(true)
})
