/** Option values shared by verbs. */
import { InvalidArgumentError } from '@commander-js/extra-typings'

/** A positive integer from the command line. */
export function positive(text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('Expected a positive integer.')
  return value
}

/** Positive integers from the command line, separated by commas. */
export const countsOf = (text: string): number[] => text.split(',').map(positive)
