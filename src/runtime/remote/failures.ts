/** Failures of a remote command, from its exit and from the messages of ssh, the shell, tar and the loader. */
import { environmentError, HeddleError } from '../../errors.js'
import type { Reply } from './protocol.js'

export interface Ended {
  readonly on: string
  /** Program that was started here. */
  readonly file: string
  readonly exitCode: number | null
  /** Name of the signal that ended it, if one did. */
  readonly signal: string | null
  readonly stderr: string
}

/** Last lines of the messages, without control characters. */
const tail = (stderr: string): string =>
  stderr
    .replace(/[^\n\x20-\x7e\u00a0-\uffff]/g, '')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .slice(-4)
    .join('\n')

/** Command line that tries the link alone. */
const trial = (on: string): string => `${/\s/.test(on) ? on : `ssh ${on}`} true`

const endOf = ({ file, exitCode, signal }: Ended): string =>
  signal !== null ? `${file} was ended by ${signal}` : `${file} ended with ${exitCode}`

/** The command that reaches the machine does not exist here. */
export const commandMissing = (on: string, file: string): HeddleError =>
  environmentError('remote.command', `--on ${on}: ${file} was not found on this machine`, {
    hint: file === 'ssh' ? 'install an ssh client' : 'correct the command, or give a name of ~/.ssh/config',
  })

/** Another operating system or processor than the files that would be sent. */
export const otherPlatform = (on: string, there: string, here: string): HeddleError =>
  environmentError('remote.platform', `${on} is ${there}; the files that this machine sends run on ${here}`, {
    hint: `use heddle on a machine with ${there}`,
  })

/** Output on the link that the agent did not write. */
export const noiseOn = (on: string): HeddleError =>
  environmentError('remote.lost', `the link to ${on} was lost: something other than the agent wrote to it`, {
    hint: 'take a command that passes output on as it is: without a terminal, as ssh -T and docker exec -i do',
  })

export const deviceTaken = (on: string, device: string, holder: string): HeddleError =>
  environmentError('remote.busy', `${device} on ${on} is in use by ${holder}`, {
    hint: 'wait for it, or name another device with --device',
  })

const diskFull = (on: string): HeddleError =>
  environmentError('remote.disk', `the disk of the cache on ${on} is full`, {
    hint: 'make room, or set HEDDLE_CACHE there to a folder on another disk',
  })

const cacheRefused = (on: string, detail: string): HeddleError =>
  environmentError('remote.cache', `the cache on ${on} cannot be written: ${detail}`, {
    hint: 'give the user a home folder there that can be written, or set HEDDLE_CACHE there',
  })

/** Causes that messages of known programs name, most specific first. */
const causes: readonly (readonly [RegExp, (ended: Ended, match: RegExpExecArray) => HeddleError])[] = [
  [
    /Host key verification failed|REMOTE HOST IDENTIFICATION HAS CHANGED/,
    ({ on, stderr }) =>
      environmentError('remote.stranger', `ssh does not trust the host key of ${on}:\n${tail(stderr)}`, {
        hint: `compare the key with the machine's, then accept it: ${trial(on)}`,
      }),
  ],
  [
    /Permission denied \(|Too many authentication failures/,
    ({ on, stderr }) =>
      environmentError('remote.login', `${on} refuses the login:\n${tail(stderr)}`, {
        hint: `make this work first: ${trial(on)}`,
      }),
  ],
  [
    /version [`'](GLIBC(?:XX)?_[\d.]+)' not found/,
    ({ on }, [, needed]) =>
      environmentError('remote.glibc', `the C library of ${on} is too old: ${needed} is needed`, {
        hint: 'take a newer system or a container there; heddle needs glibc 2.31, and the glibc of the Node that is sent',
      }),
  ],
  [
    /exec:? .*\/node: (?:not found|No such file)|\/node: cannot execute: required file not found/,
    ({ on }) =>
      environmentError('remote.glibc', `${on} has another C library than glibc, or none of its loader`, {
        hint: 'use a system or a container with glibc there: Debian, Ubuntu, Fedora and the like',
      }),
  ],
  [/No space left on device|Disk quota exceeded/, ({ on }) => diskFull(on)],
  [/heddle: no cache: (.*)/, ({ on, stderr }) => cacheRefused(on, tail(stderr))],
]

/** Error of a command that ended before the agent answered (`remote.start`), or after it (`remote.lost`), or of the cause that it names. */
export function endedError(ended: Ended, hasAnswered: boolean): HeddleError {
  for (const [pattern, make] of causes) {
    const match = pattern.exec(ended.stderr)
    if (match !== null) return make(ended, match)
  }
  const said = tail(ended.stderr)
  const detail = `${endOf(ended)}${said === '' ? '' : `:\n${said}`}`
  if (hasAnswered)
    return environmentError('remote.lost', `the link to ${ended.on} was lost: ${detail}`, {
      hint: 'run it again: what was sent is still there',
    })
  return environmentError('remote.start', `the agent on ${ended.on} did not start: ${detail}`, {
    hint: /(^|\/)ssh$/.test(ended.file)
      ? `make this work first: ${trial(ended.on)}`
      : 'the command must pass its input to a shell there: docker exec needs -i, for instance',
  })
}

const fullDisk = ['ENOSPC', 'EDQUOT']
const unwritable = ['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'ENOENT', 'EEXIST']

/** Error of a reply: of the cache there, or with the code of the addon. */
export function repliedError(on: string, error: NonNullable<Reply['error']>): Error {
  const { message, code = '' } = error
  if (fullDisk.includes(code)) return diskFull(on)
  return unwritable.includes(code) ? cacheRefused(on, message) : Object.assign(new Error(message), error)
}

/** True for a failure of the link to another machine, which says nothing of the kernel that ran. */
export const isOfLink = (error: unknown): boolean => error instanceof HeddleError && error.code.startsWith('remote.')
