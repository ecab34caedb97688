import { HeddleError } from '../src/errors.js'

/** The typed error that `act` ends in. @throws an error when it ends in none */
export function refusal(act: () => unknown): HeddleError {
  try {
    act()
  } catch (error) {
    if (error instanceof HeddleError) return error
    throw error
  }
  throw new Error('nothing was refused')
}
