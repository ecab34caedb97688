/**
 * Queue of work on a device. Work starts in the order of the calls, even if some of it first has to wait (for a kernel that is being
 * compiled). The device itself then runs started work one by one. Work that waits for nothing starts at once.
 */
export class CallQueue {
  #last: Promise<unknown> | undefined

  /** True if earlier work has not started yet. */
  get waiting(): boolean {
    return this.#last !== undefined
  }

  /** Starts `work` after all earlier work, once `ready` has resolved. Rejects with the error of `ready` or of `work`. */
  async start<T>(ready: () => Promise<void>, work: () => Promise<T>): Promise<T> {
    const before = this.#last
    // The promise is wrapped in an object, so that a turn ends when its work has started and not when it is done.
    const turn = (async () => {
      await before?.catch(() => undefined)
      await ready()
      return { result: work() }
    })()
    this.#last = turn
    const started = await turn.finally(() => {
      if (this.#last === turn) this.#last = undefined
    })
    return started.result
  }
}
