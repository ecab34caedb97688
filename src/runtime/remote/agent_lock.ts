/**
 * Lock of a device on the machine of the agent: an abstract socket, which the kernel removes with the process, so that no file and no stale lock is left.
 * A process that finds it taken asks its holder who it is. It excludes other agents, of all users who share the machine's network namespace.
 */
import { connect, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

const answerMs = 2000

/** Address of a lock. Abstract addresses have at most 107 bytes. */
const addressOf = (name: string): string => `\0heddle-${name}`

/** Describes the holder of a lock; undefined if it is free. */
export const holderOf = (name: string): Promise<string | undefined> =>
  new Promise((resolve) => {
    let said = ''
    const socket = connect(addressOf(name))
    const end = (holder: string | undefined): void => {
      socket.destroy()
      resolve(holder)
    }
    socket.setTimeout(answerMs, () => end('a process that does not answer'))
    socket.on('data', (piece) => {
      said += piece.toString()
    })
    socket.on('end', () => end(said === '' ? 'a process that does not say' : said.replace(/[^\x20-\x7e]/g, '?').slice(0, 200)))
    socket.on('error', () => end(undefined))
  })

/** Attempts before a lock counts as taken: the process of the caller's last command may be ending. */
const attempts = 5
const pauseMs = 200

/** Takes a lock until the process ends. @returns its holder if another process has it */
export async function takeLock(name: string, who: string): Promise<string | undefined> {
  for (let attempt = 1; ; attempt++) {
    if (await listens(name, who)) return undefined
    if (attempt === attempts) return (await holderOf(name)) ?? 'a process that has just ended'
    await sleep(pauseMs)
  }
}

const listens = (name: string, who: string): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer((socket) => socket.on('error', () => undefined).end(who))
    server.on('error', () => resolve(false))
    server.listen(addressOf(name), () => resolve(true))
    server.unref()
  })
