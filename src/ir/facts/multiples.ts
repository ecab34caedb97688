/** Divisors of extents: factors of counts, and of numbers. */
import type { Count } from './facts.js'

/** Constant factor of a product of numbers and names; undefined for any other count. */
export function factorOf(count: Count): number | undefined {
  if (typeof count === 'number') return count
  if (typeof count === 'string') return 1
  const [operation, ...operands] = count
  const factors = operands.map(factorOf)
  return operation === 'mul' ? factors.reduce((a, b) => (a === undefined || b === undefined ? undefined : a * b), 1) : undefined
}

export const commonDivisor = (a: number, b: number): number => (b === 0 ? a : commonDivisor(b, a % b))

export const leastCommonMultiple = (a: number, b: number): number => (a / commonDivisor(a, b)) * b
