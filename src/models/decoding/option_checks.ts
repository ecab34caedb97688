/** Checks of single generation options, and the messages for invalid ones. */
import { inspect } from 'node:util'
import { usageError, type WhatOf } from '../../errors.js'

/** Formats a value for messages; untyped callers may pass values without a JSON form. */
const shown = (value: unknown): string =>
  typeof value === 'string' ? JSON.stringify(value) : inspect(value, { depth: 1, breakLength: Number.POSITIVE_INFINITY })

/** @throws usage `generate.<option>` with the value, the allowed range, and a hint */
export const refuse = (option: WhatOf<'generate'>, value: unknown, allowed: string, hint?: string): never => {
  throw usageError(`generate.${option}`, `${option} is ${shown(value)}, expected ${allowed}`, { hint })
}

/** Checks for an integer in a range. @throws usage `generate.<option>` */
export const whole = (option: WhatOf<'generate'>, value: number, least: number, most: number, hint?: string): number =>
  Number.isInteger(value) && value >= least && value <= most
    ? value
    : refuse(option, value, `an integer from ${least} to ${most}`, hint)

/** Checks for a number from `-most` to `most`. @throws usage `generate.<option>` */
export const around = (option: WhatOf<'generate'>, value: number, most: number, hint?: string): number =>
  typeof value === 'number' && Math.abs(value) <= most ? value : refuse(option, value, `a number from -${most} to ${most}`, hint)

/** Checks for a number above 0 and at most 1. @throws usage `generate.<option>` */
export const share = (option: WhatOf<'generate'>, value: number): number =>
  Number.isFinite(value) && value > 0 && value <= 1 ? value : refuse(option, value, 'a number above 0 and at most 1')

/** Smallest divisor of logits: a smaller one may overflow float32. */
const leastFactor = 1e-6
export const largestFactor = 1e6

/** Checks a factor that logits are divided or multiplied by. @throws usage `generate.<option>` */
export const factor = (option: WhatOf<'generate'>, value: number): number =>
  Number.isFinite(value) && value >= leastFactor && value <= largestFactor
    ? value
    : refuse(option, value, `a number from ${leastFactor} to ${largestFactor}`)
