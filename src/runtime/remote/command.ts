/**
 * The command that starts a shell on another machine: ssh with a name of its configuration, or a command prefix such as `docker exec -i box` or
 * `srun --gres=gpu:1`.
 */
import { usageError } from '../../errors.js'

export interface RemoteCommand {
  readonly file: string
  readonly args: readonly string[]
}

const hint = 'give a name of ~/.ssh/config, or a command that a command line can follow: "docker exec -i box"'

/** Words of a prefix; quotes group, and nothing else is special. @throws usage `remote.host` for an open quote */
function wordsOf(text: string): string[] {
  const words = [...text.matchAll(/(?:[^\s'"]+|'[^']*'|"[^"]*")+/g)].map(([word]) => word)
  if (words.join('').length !== text.replace(/\s(?=(?:[^'"]|'[^']*'|"[^"]*")*$)/g, '').length)
    throw usageError('remote.host', `--on ${text}: a quote is not closed`, { hint })
  return words.map((word) =>
    word.replace(/'([^']*)'|"([^"]*)"/g, (_, one: string | undefined, two: string | undefined) => one ?? two ?? ''),
  )
}

/** True if the argument is a command prefix and not a name for ssh. */
const isPrefix = (on: string): boolean => /[\s/]/.test(on)

/** Commands that run the one that follows. */
const wrappers = /^(.*\/)?(env|nice|setsid|sshpass|stdbuf|sudo|time|timeout)$/

/** One word for a shell: in quotes. */
const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`

/** One word for a command line that is printed: in quotes where it needs them. */
export const shellWord = (word: string): string => (/^[\w.@:%+/=-]+$/.test(word) ? word : quoted(word))

/**
 * Command that runs a script by `sh` on the machine `on`.
 * @throws usage `remote.host`
 */
export function remoteCommand(on: string, script: string, args: readonly string[] = []): RemoteCommand {
  const shell = ['sh', '-c', script, 'heddle', ...args]
  if (!isPrefix(on)) {
    if (!/^[A-Za-z0-9_][\w.@:%-]*$/.test(on))
      throw usageError('remote.host', `--on ${JSON.stringify(on)} is no name of a machine`, { hint })
    // A silent connection is cut after a minute, instead of being awaited.
    const alive = ['-o', 'ServerAliveInterval=15', '-o', 'ServerAliveCountMax=4']
    return { file: 'ssh', args: ['-T', ...alive, on, shell.map(quoted).join(' ')] }
  }
  const [file = '', ...rest] = wordsOf(on.trim())
  if (file === '' || file.startsWith('-')) throw usageError('remote.host', `--on ${JSON.stringify(on)} is no command`, { hint })
  // ssh joins its words for the remote shell to split again.
  const isSsh = [file, ...(wrappers.test(file) ? rest : [])].some((word) => /^(.*\/)?ssh$/.test(word))
  return { file, args: [...rest, ...(isSsh ? [shell.map(quoted).join(' ')] : shell)] }
}
