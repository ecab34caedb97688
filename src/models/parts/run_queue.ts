/** Serialises the runs of a pipeline: they share its states, so each run waits for those before it. */

/** Returns a function that waits for earlier runs and returns a release; the next run waits until it is called. */
export function runQueue(): () => Promise<() => void> {
  let queue: Promise<void> = Promise.resolve()
  return async () => {
    const before = queue
    let release = (): void => {}
    queue = new Promise((resolve) => {
      release = resolve
    })
    await before
    return release
  }
}
