/** Option values shared by verbs. */
import { InvalidArgumentError } from '@commander-js/extra-typings'
import { z } from 'zod'
import { floatTypes } from '../checkpoint/float_types.js'
import { type ErrorCode, usageError } from '../errors.js'

/** Parses a positive integer from the command line. */
export function positive(text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('Expected a positive integer.')
  return value
}

/** Parses positive integers from the command line, separated by commas. */
export const countsOf = (text: string): number[] => text.split(',').map(positive)

/** Parses storage types from the command line, separated by commas. */
export const dtypesOf = (text: string): readonly (typeof floatTypes)[number][] =>
  [...new Set(text.split(','))].map((part) => {
    const found = floatTypes.find((type) => type === part)
    if (found === undefined) throw new InvalidArgumentError(`Expected storage types: ${floatTypes.join(', ')}.`)
    return found
  })

/** Parses `m=512,n=768` and adds it to earlier dimensions. */
export const dimensions = (
  text: string,
  before: Readonly<Record<string, number>> | undefined = {},
): Readonly<Record<string, number>> => ({
  ...before,
  ...Object.fromEntries(
    text.split(',').map((part) => {
      const [, name, extent] = /^([A-Za-z]\w*)=([1-9]\d{0,14})$/.exec(part) ?? []
      if (name === undefined) throw new InvalidArgumentError(`"${part}" is not a dimension: expected a list such as m=512,n=768.`)
      return [name, Number(extent)]
    }),
  ),
})

/** Parses the regular expression of an option. @throws usage `code` for an invalid one */
export function pattern(text: string | undefined, code: ErrorCode): RegExp | undefined {
  if (text === undefined) return undefined
  try {
    return new RegExp(text)
  } catch (cause) {
    throw usageError(code, `${JSON.stringify(text)} is not a regular expression`, { cause })
  }
}

/** Parses a JSON object from the command line. */
export function jsonObject(text: string): Readonly<Record<string, unknown>> {
  try {
    return z.record(z.string(), z.unknown()).parse(JSON.parse(text))
  } catch {
    throw new InvalidArgumentError('Expected a JSON object.')
  }
}

/** Parses a number of minutes, which may be a fraction. */
export function minutesOf(text: string): number {
  const value = Number(text)
  if (!(value > 0) || !Number.isFinite(value)) throw new InvalidArgumentError('Expected a positive number of minutes.')
  return value
}

/** Parses `batch=b,seq=s`: names by role, of which some have to be there. */
export function namesByName(
  text: string,
  needed: readonly string[],
  others: readonly string[],
): Readonly<Record<string, string | undefined>> {
  const pairs = text.split(',').map((part) => /^(\w+)=(\w+)$/.exec(part) ?? [])
  const roles = pairs.map(([, role = '']) => role)
  const isKnown = roles.every((role) => needed.includes(role) || others.includes(role))
  if (!isKnown || !needed.every((role) => roles.includes(role)))
    throw new InvalidArgumentError(`Expected names by role: ${needed.map((role) => `${role}=NAME`).join(',')}.`)
  return Object.fromEntries(pairs.map(([, role = '', name]) => [role, name]))
}
