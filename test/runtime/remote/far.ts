/**
 * Stand-ins for another machine: a home folder of its own behind `env -i`, commands that reach it as docker and ssh do, and a relay that is slow, is cut
 * or writes noise.
 */
import { execFile } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { repository } from '../../cli/host.js'

export interface Far {
  readonly home: string
  /** The cache of parts and of sent bytes. */
  readonly cache: string
  /** Folder of programs that come before those of the system. */
  readonly bin: string
  /** Argument of `--on`. */
  readonly on: string
}

/** A machine without anything, or with the parts that another one got. */
export async function farMachine(base?: Far): Promise<Far> {
  await mkdir(join(repository, '.heddle'), { recursive: true })
  const home = await mkdtemp(join(repository, '.heddle', 'far-'))
  const [cache, bin] = [join(home, '.cache/heddle/remote'), join(home, 'bin')]
  await mkdir(bin)
  if (base !== undefined) {
    await mkdir(cache, { recursive: true })
    for (const name of await readdir(base.cache)) if (name !== 'sent') await symlink(join(base.cache, name), join(cache, name))
  }
  return { home, cache, bin, on: `env -i HOME=${home} PATH=${bin}:/usr/bin:/bin` }
}

/** Folder of a part in a machine's cache. */
export async function partOf({ cache }: Far, kind: 'node' | 'agent' | 'native'): Promise<string> {
  const name = (await readdir(cache)).find((each) => each.startsWith(`${kind}-`))
  if (name === undefined) throw new Error(`${cache} has no ${kind}`)
  return join(cache, name)
}

/** Writes a program. */
export async function program(path: string, text: string): Promise<string> {
  await writeFile(path, text)
  await chmod(path, 0o755)
  return path
}

/** A client of containers: `box exec -i NAME command...`. */
export const boxOf = ({ bin, on }: Far): Promise<string> =>
  program(join(bin, 'box'), `#!/bin/sh\n[ "$1 $2" = "exec -i" ] || exit 64\nshift 3\ncd /\nexec ${on} "$@"\n`)

/** An ssh that runs commands as sshd does, by a shell that greets. Some names fail as ssh fails. */
export const sshOf = ({ bin, on }: Far): Promise<string> =>
  program(
    join(bin, 'ssh'),
    `#!/bin/sh
while getopts To: option; do :; done
shift $((OPTIND - 1))
host=$1; shift
case $host in
stranger) echo "Host key verification failed." >&2; exit 255 ;;
nobody) echo "me@nobody: Permission denied (publickey,password)." >&2; exit 255 ;;
away) echo "ssh: connect to host away port 22: Connection refused" >&2; exit 255 ;;
esac
echo "Welcome to $host"
exec ${on} SSH_CONNECTION=1 sh -c "$*"
`,
  )

/** Relays the streams of a command. It writes the process to a file; `cut` dies after some bytes, `noise` writes words of its own. */
export async function relayOf({ bin, home, on }: Far, mode: 'slow' | 'cut' | 'noise'): Promise<{ on: string; pid: string }> {
  const pid = join(home, `${mode}.pid`)
  const file = join(bin, `${mode}.mjs`)
  await writeFile(
    file,
    `import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
const child = spawn(process.argv[2], process.argv.slice(3), { stdio: ['pipe', 'pipe', 'inherit'] })
writeFileSync(${JSON.stringify(pid)}, String(child.pid))
let sent = 0
async function relay(from, to, isInput) {
  for await (const piece of from) {
    if (${mode === 'slow'}) {
      for (let at = 0; at < piece.length; at += 20_000) {
        await sleep(5)
        to.write(piece.subarray(at, at + 20_000))
      }
    } else to.write(piece)
    if (isInput) sent += piece.length
    if (${mode === 'cut'} && sent > 3000) process.kill(process.pid, 'SIGKILL')
    if (${mode === 'noise'} && !isInput) to.write('The system is going down for maintenance')
  }
  to.end()
}
child.on('exit', (code) => process.exit(code ?? 1))
await Promise.all([relay(process.stdin, child.stdin, true), relay(child.stdout, process.stdout, false)])
`,
  )
  return { on: `'${process.execPath}' ${file} ${on}`, pid }
}

/** The command in a process of its own, with programs that come first on its path. */
export const elsewhere = (
  argv: readonly string[],
  cwd: string,
  bin: string,
): Promise<{ exitCode: number; out: string; log: string }> =>
  new Promise((resolve) => {
    const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` }
    const child = execFile(process.execPath, [join(repository, 'dist/cli.js'), ...argv], { cwd, env }, (_, out, log) =>
      resolve({ exitCode: child.exitCode ?? -1, out, log }),
    )
  })

/** A text without its numbers, and the spaces and lines that depend on their widths. */
export const shapeOf = (text: string): string[] =>
  text
    .replace(/\d[\d.,]*/g, '#')
    .replace(/[ ─]+/g, ' ')
    .split('\n')
    .filter((line) => !/: sent #|^sending |^compiling |^building the addon/.test(line))
    .sort()
