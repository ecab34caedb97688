/** Runs of a pipeline follow each other: they share its states, so that a run waits for those before it. */

/** Returns what waits for the runs before; the next run waits for the release that it gives. */
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
