/**
 * Facts of dimensions that an op states, for whoever runs it from Node: an op that is taken apart and put together again keeps them with its
 * body. What the compiler makes of the same facts, src/frontend/facts.ts reads.
 */
import type { ExtentFact } from '../ir/facts/facts.js'
import { parseSize } from '../ir/facts/size_text.js'

const kept = new WeakMap<object, Readonly<Record<string, unknown>>>()

/** Keeps the facts of an op's declaration. */
export function keepFacts(body: object, facts: unknown): void {
  if (typeof facts === 'object' && facts !== null) kept.set(body, facts as Readonly<Record<string, unknown>>)
}

const sizeOf = (given: unknown): ExtentFact => {
  if (typeof given === 'number') return { equal: given }
  if (typeof given === 'string') return { equal: parseSize(given) }
  const multipleOf = typeof given === 'object' && given !== null && 'multipleOf' in given ? given.multipleOf : undefined
  return typeof multipleOf === 'number' ? { multipleOf } : {}
}

/** What an op states of its dimensions as they have to be: what they are equal to, and multiples of. */
export const dimFactsOf = ({
  body,
  dims,
}: {
  readonly body: object
  readonly dims: readonly string[]
}): Readonly<Record<string, ExtentFact>> =>
  Object.fromEntries(
    Object.entries(kept.get(body) ?? {}).flatMap(([name, given]) =>
      dims.includes(name) ? [[name, sizeOf(given)] as const] : [],
    ),
  )
