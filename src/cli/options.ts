/** Option values shared by verbs. */
import { InvalidArgumentError } from '@commander-js/extra-typings'
import { z } from 'zod'
import { type ErrorCode, usageError } from '../errors.js'

/** A positive integer from the command line. */
export function positive(text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('Expected a positive integer.')
  return value
}

/** Positive integers from the command line, separated by commas. */
export const countsOf = (text: string): number[] => text.split(',').map(positive)

/** `m=512,n=768`, added to what was given before. */
export const dimensions = (
  text: string,
  before: Readonly<Record<string, number>> | undefined = {},
): Readonly<Record<string, number>> => ({
  ...before,
  ...Object.fromEntries(
    text.split(',').map((part) => {
      const [, name, extent] = /^([A-Za-z]\w*)=([1-9]\d{0,14})$/.exec(part) ?? []
      if (name === undefined) throw new InvalidArgumentError(`"${part}" is no dimension: expected a list such as m=512,n=768.`)
      return [name, Number(extent)]
    }),
  ),
})

/** The regular expression of an option. @throws usage `code` for what is none */
export function pattern(text: string | undefined, code: ErrorCode): RegExp | undefined {
  if (text === undefined) return undefined
  try {
    return new RegExp(text)
  } catch (cause) {
    throw usageError(code, `${JSON.stringify(text)} is not a regular expression`, { cause })
  }
}

/** A JSON object on the command line. */
export function jsonObject(text: string): Readonly<Record<string, unknown>> {
  try {
    return z.record(z.string(), z.unknown()).parse(JSON.parse(text))
  } catch {
    throw new InvalidArgumentError('Expected a JSON object.')
  }
}
