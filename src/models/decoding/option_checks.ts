/** Checks of single options of generation, and what a message says of one that is wrong. */
import { inspect } from 'node:util'
import { usageError, type WhatOf } from '../../errors.js'

/** A value as a message shows it; callers without types give what has no JSON. */
const shown = (value: unknown): string =>
  typeof value === 'string' ? JSON.stringify(value) : inspect(value, { depth: 1, breakLength: Number.POSITIVE_INFINITY })

/** @throws usage `generate.<option>` with the value, what is allowed, and a hint */
export const refuse = (option: WhatOf<'generate'>, value: unknown, allowed: string, hint?: string): never => {
  throw usageError(`generate.${option}`, `${option} is ${shown(value)}, expected ${allowed}`, { hint })
}

/** A whole number of a range. @throws usage `generate.<option>` */
export const whole = (option: WhatOf<'generate'>, value: number, least: number, most: number, hint?: string): number =>
  Number.isInteger(value) && value >= least && value <= most
    ? value
    : refuse(option, value, `an integer from ${least} to ${most}`, hint)

/** A number on either side of 0. @throws usage `generate.<option>` */
export const around = (option: WhatOf<'generate'>, value: number, most: number, hint?: string): number =>
  typeof value === 'number' && Math.abs(value) <= most ? value : refuse(option, value, `a number from -${most} to ${most}`, hint)

/** A number above 0, and at most 1. @throws usage `generate.<option>` */
export const share = (option: WhatOf<'generate'>, value: number): number =>
  Number.isFinite(value) && value > 0 && value <= 1 ? value : refuse(option, value, 'a number above 0 and at most 1')

/** Logits that are divided by a smaller number may be too large for float32. */
const leastFactor = 1e-6
export const largestFactor = 1e6

/** What logits are divided or multiplied by. @throws usage `generate.<option>` */
export const factor = (option: WhatOf<'generate'>, value: number): number =>
  Number.isFinite(value) && value >= leastFactor && value <= largestFactor
    ? value
    : refuse(option, value, `a number from ${leastFactor} to ${largestFactor}`)
