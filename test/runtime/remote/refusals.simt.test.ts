/** Refusals of another machine, each provoked: code, message and hint, and no process that is left there. */
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readFile, rm, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { heddle, repository } from '../../cli/host.js'
import { elsewhere, type Far, farMachine, partOf, program, relayOf, sshOf } from './far.js'

const check = ['check', 'shift', '--dtype', 'f32', '--device', 'simt', '--no-nvcc']
let root: string
let base: Far
let made: Far[]
beforeAll(async () => {
  base = await farMachine()
  root = await mkdtemp(join(repository, '.heddle', 'refused-'))
  await cp(join(repository, 'test/projects/mixer/specs'), join(root, 'specs'), { recursive: true })
  made = [base]
  expect(await heddle(['doctor', '--on', base.on])).toMatchObject({ exitCode: 0 })
})
afterAll(() => Promise.all([root, ...made.map(({ home }) => home)].map((each) => rm(each, { recursive: true }))))

/** A machine with all parts. */
async function another(): Promise<Far> {
  const far = await farMachine(base)
  made.push(far)
  return far
}

/** Replaces the Node of a machine by a script. */
async function withNode(text: string): Promise<Far> {
  const far = await another()
  const node = await partOf(far, 'node')
  await unlink(node)
  await mkdir(node)
  await program(join(node, 'node'), text)
  return far
}

const doctor = (on: string) => heddle(['doctor', '--on', on])

async function expectRefused(run: ReturnType<typeof doctor>, code: string, ...parts: readonly string[]): Promise<void> {
  const { exitCode, out, log } = await run
  expect({ exitCode, out }).toEqual({ exitCode: code === 'remote.host' ? 2 : 3, out: '' })
  expect(log).toContain(`error[${code}]: `)
  for (const part of parts) expect(log).toContain(part)
}

test('a machine whose Node does not start says why: an old glibc, another C library, anything else', async () => {
  const old = await withNode(`#!/bin/sh
echo "$0: /lib/x86_64-linux-gnu/libc.so.6: version \\\`GLIBC_2.34' not found (required by $0)" >&2
exit 1
`)
  await expectRefused(
    doctor(old.on),
    'remote.glibc',
    `the C library of ${old.on} is too old: GLIBC_2.34 is needed`,
    'hint: take a newer system',
  )
  const musl = await withNode('#!/nowhere/ld-linux.so\n')
  await expectRefused(doctor(musl.on), 'remote.glibc', 'has another C library than glibc', 'hint: use a system or a container')
  const broken = await withNode('#!/bin/sh\necho "cannot allocate memory" >&2\nexit 9\n')
  await expectRefused(doctor(broken.on), 'remote.start', 'env ended with 9:\ncannot allocate memory', 'docker exec needs -i')
})

test('a command that does not exist, or runs no shell', async () => {
  await expectRefused(
    doctor('/nowhere/srun --gpus=1'),
    'remote.command',
    '/nowhere/srun was not found',
    'hint: correct the command',
  )
  await expectRefused(doctor('true x'), 'remote.start', 'true ended with 0', 'docker exec needs -i')
  await expectRefused(doctor('-oProxyCommand=x'), 'remote.host', 'is no name of a machine', 'hint: give a name')
  await expectRefused(doctor('-o ProxyCommand=x'), 'remote.host', 'is no command')
  await expectRefused(doctor('docker exec "box'), 'remote.host', 'a quote is not closed')
})

test('what ssh refuses: a stranger, a login, a machine that is away', async () => {
  const far = await another()
  await sshOf(far)
  const ssh = (on: string) => elsewhere(['doctor', '--on', on], repository, far.bin)
  await expectRefused(
    ssh('stranger'),
    'remote.stranger',
    'Host key verification failed.',
    'hint: compare the key',
    'ssh stranger true',
  )
  await expectRefused(ssh('ssh -T stranger'), 'remote.stranger', 'then accept it: ssh -T stranger true\n')
  await expectRefused(ssh('nobody'), 'remote.login', 'nobody refuses the login:', 'hint: make this work first: ssh nobody true')
  await expectRefused(
    ssh('away'),
    'remote.start',
    'ssh ended with 255:',
    'Connection refused',
    'make this work first: ssh away true',
  )
})

test('another system or processor', async () => {
  const far = await another()
  await program(join(far.bin, 'uname'), '#!/bin/sh\n[ "$1" = -s ] && echo Darwin || echo arm64\n')
  await expectRefused(
    doctor(far.on),
    'remote.platform',
    `${far.on} is Darwin arm64`,
    'run on Linux x86_64',
    'hint: use heddle on',
  )
})

test('a cache that cannot be written, and a full disk', async () => {
  const far = await another()
  await expectRefused(
    doctor(`${far.on} HEDDLE_CACHE=/dev/null/cache`),
    'remote.cache',
    'cannot be written',
    '/dev/null/cache/remote',
  )
  await expectRefused(doctor('env -i PATH=/usr/bin:/bin'), 'remote.cache', 'there is no home folder', 'set HEDDLE_CACHE there')
  await writeFile(join(far.cache, 'sent'), '')
  const run = heddle([...check, '--on', far.on], root)
  await expectRefused(run, 'remote.cache', 'EEXIST', 'hint: give the user a home folder')
  const full = await farMachine()
  made.push(full)
  await program(
    join(full.bin, 'tar'),
    '#!/bin/sh\necho "tar: node: Cannot write: No space left on device" >&2\ncat >/dev/null\nexit 2\n',
  )
  await expectRefused(doctor(full.on), 'remote.disk', `the disk of the cache on ${full.on} is full`, 'hint: make room')
  // The transfer left nothing.
  expect(existsSync(join(full.cache, (await partOf(base, 'node')).slice(base.cache.length + 1)))).toBe(false)
})

test('a link that is cut, or to which something else writes', async () => {
  const far = await another()
  const cut = await relayOf(far, 'cut')
  await expectRefused(heddle([...check, '--on', cut.on], root), 'remote.lost', 'was ended by SIGKILL', 'hint: run it again')
  // The agent ends by itself: the test waits for nothing else.
  const pid = await readFile(cut.pid, 'utf8')
  while (existsSync(`/proc/${pid}`)) await sleep(20)
  const noise = await relayOf(far, 'noise')
  await expectRefused(doctor(noise.on), 'remote.lost', 'something other than the agent wrote to it', 'hint: take a command')
})
