/**
 * Requests in order, each with the bytes that it names by digest: from the store, or asked for. Requests behind one that waits for bytes wait as
 * well, since the caller relies on their order.
 */
import { type DeviceRequest, type Given, neededBy } from './agent_device.js'
import type { Store } from './agent_store.js'
import { digestOf, type Request } from './protocol.js'

export interface Numbered {
  readonly id: number
  readonly request: Request
}

export interface QueueOptions {
  /** Stored tensors and libraries; undefined before a device is open. */
  store(): Store | undefined
  ask(id: number, needs: readonly string[]): void
  handle(numbered: Numbered, given: Given): void
}

const isOfDevice = (request: Request): request is DeviceRequest =>
  request.op !== 'about' && request.op !== 'open' && request.op !== 'give'

/** Receiver of requests. */
export function requestQueue({ store, ask, handle }: QueueOptions): (numbered: Numbered) => void {
  const waiting: Numbered[] = []
  /** Bytes that came for requests that are not handled yet. */
  const given = new Map<string, Uint8Array>()
  let asked: Set<string> | undefined

  const give = (digest: string, data: Uint8Array): void => {
    asked?.delete(digest)
    if (digestOf(data) !== digest) return
    given.set(digest, data)
    try {
      store()?.add(digest, data)
    } catch {
      // A store that takes nothing more costs the next link its bytes. A library, which has to be a file, fails where it is loaded.
    }
  }
  /** Bytes that a request names; undefined after asking for missing ones, which happens once. */
  const found = ({ id, request }: Numbered): Given | undefined => {
    const digests = isOfDevice(request) ? neededBy(request) : []
    const data = new Map<string, Uint8Array>()
    for (const digest of digests) {
      const bytes = given.get(digest) ?? store()?.read(digest)
      if (bytes !== undefined) data.set(digest, bytes)
    }
    const missing = [...new Set(digests.filter((digest) => !data.has(digest)))]
    if (missing.length > 0 && asked === undefined) {
      asked = new Set(missing)
      ask(id, missing)
      return undefined
    }
    for (const digest of digests) given.delete(digest)
    return data
  }
  return (numbered) => {
    const { request } = numbered
    if (request.op === 'give') give(request.digest, request.data)
    else waiting.push(numbered)
    while (asked === undefined || asked.size === 0) {
      const [next] = waiting
      const data = next === undefined ? undefined : found(next)
      if (next === undefined || data === undefined) return
      asked = undefined
      waiting.shift()
      handle(next, data)
    }
  }
}
