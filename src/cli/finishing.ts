/**
 * Distinguishes a finished verb from one whose process ends early. Node exits silently when nothing is left to wait for: a promise that never
 * settles keeps no process alive, and a library that hooks the exit (signal-exit does) makes the code 0. `main` runs every verb through this.
 */
import { environmentError, type HeddleError } from '../errors.js'

/**
 * Returns the result of `action`, and fails if the process runs out of work before `action` settles.
 * @param verb name in messages: `heddle check`
 * @param abandon cleans up child processes and partial files of the verb, which can no longer do so itself
 * @throws environment `cli.unfinished` if the process is about to end before that; errors of `action`
 */
export async function finishing<T>(verb: string, action: () => Promise<T>, abandon: (reason: HeddleError) => void): Promise<T> {
  let isDry = (): void => undefined
  const dry = new Promise<never>((_, reject) => {
    isDry = () => {
      const reason = environmentError('cli.unfinished', `expected a result of ${verb}, got the end of its process`, {
        hint: 'a spec module may await a promise that never settles; otherwise run it again, and report it with its output',
      })
      reject(reason)
      abandon(reason)
    }
  })
  process.once('beforeExit', isDry)
  try {
    return await Promise.race([action(), dry])
  } finally {
    process.off('beforeExit', isDry)
  }
}
