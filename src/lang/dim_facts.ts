/**
 * Facts of dimensions that an op states, for runs from Node. They are stored by body, so that an op that is taken apart and put together
 * again retains them. src/frontend/signature/facts.ts reads the same facts for the compiler.
 */
import type { ExtentFact } from '../ir/facts/facts.js'
import { parseSize } from '../ir/facts/size_text.js'

const factsOfBody = new WeakMap<object, Readonly<Record<string, unknown>>>()

/** Stores the facts of an op's declaration. */
export function keepFacts(body: object, facts: unknown): void {
  if (typeof facts === 'object' && facts !== null) factsOfBody.set(body, facts as Readonly<Record<string, unknown>>)
}

const sizeOf = (given: unknown): ExtentFact => {
  if (typeof given === 'number') return { equal: given }
  if (typeof given === 'string') return { equal: parseSize(given) }
  const multipleOf = typeof given === 'object' && given !== null && 'multipleOf' in given ? given.multipleOf : undefined
  return typeof multipleOf === 'number' ? { multipleOf } : {}
}

/** Exact constraints that an op states on its dimensions: their values and divisors. */
export const dimFactsOf = ({
  body,
  dims,
}: {
  readonly body: object
  readonly dims: readonly string[]
}): Readonly<Record<string, ExtentFact>> =>
  Object.fromEntries(
    Object.entries(factsOfBody.get(body) ?? {}).flatMap(([name, given]) =>
      dims.includes(name) ? [[name, sizeOf(given)] as const] : [],
    ),
  )
