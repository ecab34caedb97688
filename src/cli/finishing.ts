/**
 * Tells a verb that ends from one whose process ends under it. Node leaves in silence when nothing is left to wait for: a promise that never
 * settles keeps no process alive, and a library that holds on to the exit (signal-exit does) makes the code 0. `main` runs every verb in this.
 */
import { environmentError, type HeddleError } from '../errors.js'

/**
 * What `action` returns, while there is something to wait for.
 * @param verb as messages name it: `heddle check`
 * @param abandon ends what the verb has begun, children and half-made files, once it can no longer do so itself
 * @throws environment `cli.unfinished` when the process is about to end before that; what `action` throws
 */
export async function finishing<T>(verb: string, action: () => Promise<T>, abandon: (reason: HeddleError) => void): Promise<T> {
  let isDry = (): void => undefined
  const dry = new Promise<never>((_, reject) => {
    isDry = () => {
      const reason = environmentError('cli.unfinished', `expected a result of ${verb}, got the end of its process`, {
        hint: 'a spec module may await what never comes; else run it again, and report it with what it printed',
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
