/**
 * What lies where while a program is flattened: storages with the steps during which they hold a value, and which of the values a
 * storage has held is there now. A kernel that replaces elements in place makes a new value of an old one's memory, so whoever reads
 * the old one afterwards is refused.
 */
import { usageError } from '../errors.js'

/** Index into `FlatProgram.storages`. */
export type StorageId = number

/** Memory for values: a weight's, a state's, or a piece of the arena while a value is alive. */
export interface Storage {
  readonly bytes: number
  readonly weight: string | undefined
  /** Wire of the state whose memory it is. */
  state: string | undefined
  /** Steps during which it holds its value, both ends included; before the first of them where nothing has used it. */
  first: number
  last: number
}

/** A value: a storage, and how many values lay there before it. */
export interface Held {
  readonly storage: StorageId
  readonly version: number
}

export class ProgramMemory {
  readonly storages: Storage[] = []
  /** Steps that replaced elements, of each storage in order. */
  readonly #updates = new Map<StorageId, string[]>()

  /** Memory for a value that step `step` makes. */
  allocate(bytes: number, step: number, weight?: string): Held {
    this.storages.push({ bytes, weight, state: undefined, first: step, last: step })
    return { storage: this.storages.length - 1, version: 0 }
  }

  /** The memory of a state, which holds a value before the first step. */
  allocateState(bytes: number, state: string): Held {
    this.storages.push({ bytes, weight: undefined, state, first: 0, last: -1 })
    return { storage: this.storages.length - 1, version: 0 }
  }

  at(id: StorageId): Storage {
    const storage = this.storages[id]
    if (storage === undefined) throw new Error(`internal: no storage ${id}`)
    return storage
  }

  /** Lengthens a storage's life to include a step. */
  extend(id: StorageId, step: number): StorageId {
    const storage = this.at(id)
    storage.first = Math.min(storage.first, step)
    storage.last = Math.max(storage.last, step)
    return id
  }

  /**
   * The storage of a value that a step reads.
   * @throws usage `program.replaced` when a step before has replaced elements of the value in place
   */
  read({ storage, version }: Held, step: number, reader: string): StorageId {
    const by = this.#updates.get(storage)?.[version]
    if (by !== undefined) {
      throw usageError('program.replaced', `${reader} needs a value of which ${by} has replaced elements in place`, {
        hint: `let it read the result of ${by}, or come before it`,
      })
    }
    return this.extend(storage, step)
  }

  /** The value that a step makes of another in its memory. The other must have been read with `read`. */
  replace({ storage, version }: Held, by: string): Held {
    this.#updates.set(storage, [...(this.#updates.get(storage) ?? []), by])
    return { storage, version: version + 1 }
  }

  /** The last step that replaced elements of a storage in place. */
  replacedBy(id: StorageId): string | undefined {
    return this.#updates.get(id)?.at(-1)
  }
}
