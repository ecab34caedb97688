/**
 * Memory of a program while it is flattened: storages with their live ranges in steps, and the current version of each storage's value. A
 * kernel that updates elements in place creates a new value in the memory of the old one, so a later read of the old one is an error.
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
  /** Live range in steps, both ends included; `last` is below `first` if no step has used it. */
  first: number
  last: number
}

/** A value: a storage, and the number of earlier values in it. */
export interface StoredValue {
  readonly storage: StorageId
  readonly version: number
}

export class ProgramMemory {
  readonly storages: Storage[] = []
  /** Labels of the steps that updated elements in place, by storage, in order. */
  readonly #updates = new Map<StorageId, string[]>()

  /** Allocates memory for a value that step `step` computes. */
  allocate(bytes: number, step: number, weight?: string): StoredValue {
    this.storages.push({ bytes, weight, state: undefined, first: step, last: step })
    return { storage: this.storages.length - 1, version: 0 }
  }

  /** Allocates the memory of a state, which holds a value before the first step. */
  allocateState(bytes: number, state: string): StoredValue {
    this.storages.push({ bytes, weight: undefined, state, first: 0, last: -1 })
    return { storage: this.storages.length - 1, version: 0 }
  }

  at(id: StorageId): Storage {
    const storage = this.storages[id]
    if (storage === undefined) throw new Error(`internal: no storage ${id}`)
    return storage
  }

  /** Extends a storage's live range to include a step. */
  extend(id: StorageId, step: number): StorageId {
    const storage = this.at(id)
    storage.first = Math.min(storage.first, step)
    storage.last = Math.max(storage.last, step)
    return id
  }

  /**
   * Storage of a value that a step reads.
   * @throws usage `program.replaced` if an earlier step has replaced elements of the value in place
   */
  read({ storage, version }: StoredValue, step: number, reader: string): StorageId {
    const by = this.#updates.get(storage)?.[version]
    if (by !== undefined) {
      throw usageError('program.replaced', `${reader} reads a value that ${by} has overwritten in place`, {
        hint: `read the result of ${by}, or run ${reader} before it`,
      })
    }
    return this.extend(storage, step)
  }

  /** Returns the new value of a step that updates another in place. The other must have been read with `read`. */
  replace({ storage, version }: StoredValue, by: string): StoredValue {
    this.#updates.set(storage, [...(this.#updates.get(storage) ?? []), by])
    return { storage, version: version + 1 }
  }

  /** The last step that replaced elements of a storage in place. */
  replacedBy(id: StorageId): string | undefined {
    return this.#updates.get(id)?.at(-1)
  }
}
