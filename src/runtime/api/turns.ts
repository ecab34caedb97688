/**
 * The order of work on a device. Work starts in the order it was asked for, whatever it has to wait for first (a kernel that is being
 * compiled); the device itself then runs what was started one by one. Without anything to wait for it starts at once.
 */
export class Turns {
  #last: Promise<unknown> | undefined

  /** True if work that was asked for before has not started yet. */
  get waiting(): boolean {
    return this.#last !== undefined
  }

  /** Starts `work` behind everything before, when `ready` has resolved. Rejects with what `ready` rejects with, or as `work` does. */
  async start<T>(ready: () => Promise<void>, work: () => Promise<T>): Promise<T> {
    const before = this.#last
    // The result is wrapped, so that a turn ends when its work has started and not when it is done.
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
