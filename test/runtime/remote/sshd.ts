/** An sshd on loopback with a second user, a key and a configuration of its own, so that nothing of this machine's ssh is used or changed. */
import { execFile, spawn } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { which } from '../../../src/toolchain/index.js'

const user = 'heddle-far'
const sshdPath = '/usr/sbin/sshd'

const run = (file: string, ...args: readonly string[]): Promise<string> =>
  new Promise((resolve, reject) =>
    execFile(file, args, (error, out, log) =>
      error === null ? resolve(out) : reject(new Error(`${file}: ${error.message}${log}`)),
    ),
  )

/** The reason why this machine cannot have one; undefined if it can. */
export async function whyNoSshd(): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return 'only root adds a user and starts sshd'
  for (const tool of [sshdPath, 'ssh', 'ssh-keygen', 'useradd', 'userdel'])
    if ((await which(tool)) === undefined) return `${tool} is not installed`
  return undefined
}

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })

export interface Sshd {
  /** Argument of `--on`. */
  readonly on: string
  readonly home: string
  readonly port: number
  /** Processes of the user, by command line. */
  processes(): Promise<readonly string[]>
  /** Ports that processes of the user listen at. */
  ports(): Promise<readonly string[]>
  stop(): Promise<void>
}

export async function startSshd(): Promise<Sshd> {
  const folder = await mkdtemp(join(tmpdir(), 'heddle-sshd-'))
  await chmod(folder, 0o755)
  const [home, port] = [join(folder, 'home'), await freePort()]
  await mkdir(join(folder, 'skeleton'))
  await mkdir('/run/sshd', { recursive: true })
  await run('userdel', user).catch(() => undefined)
  await run('useradd', '-m', '-d', home, '-k', join(folder, 'skeleton'), '-s', '/bin/sh', '-p', '*', user)
  const uid = (await run('id', '-u', user)).trim()
  for (const name of ['host', 'key']) await run('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', join(folder, name))
  const host = await readFile(join(folder, 'host.pub'), 'utf8')
  await writeFile(join(folder, 'known'), `[127.0.0.1]:${port} ${host}`)
  const server = `ListenAddress 127.0.0.1:${port}\nHostKey ${folder}/host\nAuthorizedKeysFile ${folder}/key.pub\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPidFile none\n`
  const client = `Host far\n  HostName 127.0.0.1\n  Port ${port}\n  User ${user}\n  IdentityFile ${folder}/key\n  IdentitiesOnly yes\n  UserKnownHostsFile ${folder}/known\n  StrictHostKeyChecking yes\n`
  await writeFile(join(folder, 'server.conf'), server)
  await writeFile(join(folder, 'client.conf'), client)
  const daemon = spawn(sshdPath, ['-D', '-e', '-f', join(folder, 'server.conf')], { stdio: 'ignore' })
  const on = `ssh -F ${join(folder, 'client.conf')} far`
  for (let attempt = 0; attempt < 50; attempt++) {
    if (
      await run('ssh', '-F', join(folder, 'client.conf'), 'far', 'true').then(
        () => true,
        () => false,
      )
    )
      break
    await sleep(100)
  }
  return {
    ...{ on, home, port },
    processes: () => processesOf(uid),
    ports: () => portsOf(uid),
    async stop() {
      daemon.kill()
      await run('userdel', user)
      await rm(folder, { recursive: true })
    },
  }
}

export async function processesOf(uid: string): Promise<readonly string[]> {
  const found: string[] = []
  for (const id of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const [status, line] = await Promise.all(
      ['status', 'cmdline'].map((name) => readFile(join('/proc', id, name), 'utf8').catch(() => '')),
    )
    if (new RegExp(`^Uid:\t${uid}\t`, 'm').test(status ?? '')) found.push((line ?? '').replaceAll('\0', ' '))
  }
  return found
}

export async function portsOf(uid: string): Promise<readonly string[]> {
  const tables = await Promise.all(
    ['tcp', 'tcp6', 'udp', 'udp6'].map((name) => readFile(`/proc/net/${name}`, 'utf8').catch(() => '')),
  )
  const sockets = tables.flatMap((text) =>
    text
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/\s+/)),
  )
  // 0A listens; a UDP socket without a peer is 07.
  return sockets.flatMap(([, local = '', , state, , , , owner]) =>
    (state === '0A' || state === '07') && owner === uid ? [local] : [],
  )
}
