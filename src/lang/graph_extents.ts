/**
 * Extents of an op's outputs that no input of the op fixes, derived from its facts: products of the graph's dimensions, like all extents of a graph.
 */
import { type Count, namesOf } from '../ir/facts/facts.js'
import { getOwn } from '../ir/get_own.js'
import { type Extent, multiplyExtents } from '../ir/shape.js'
import { dimFactsOf } from './dim_facts.js'
import type { Op } from './types.js'

type Bound = Readonly<Record<string, Extent>>

type DimFacts = ReturnType<typeof dimFactsOf>

/** Extent of a dimension that follows from facts, possibly through other dimensions; undefined if none does, or if it is not a product. */
export function fixedExtent(op: Pick<Op, 'body' | 'dims'>, dim: string, bound: Bound): Extent | undefined {
  const facts = dimFactsOf(op)
  const known: Record<string, Extent> = { ...bound }
  for (const _ of op.dims) {
    for (const each of op.dims) {
      const derived = getOwn(known, each) === undefined ? derivedExtent(facts, each, known) : undefined
      if (derived !== undefined) known[each] = derived
    }
  }
  return getOwn(known, dim)
}

/** Value of a dimension that follows from facts and known dimensions. */
function derivedExtent(facts: DimFacts, dim: string, bound: Bound): Extent | undefined {
  const stated = getOwn(facts, dim)?.equal
  const derived = stated === undefined ? undefined : productOf(stated, bound)
  if (derived !== undefined) return derived
  for (const [other, { equal }] of Object.entries(facts)) {
    const whole = getOwn(bound, other)
    if (equal === undefined || whole === undefined) continue
    const names = namesOf(equal)
    if (names.filter((name) => name === dim).length !== 1) continue
    // All factors of the product except the dimension itself.
    const rest = productOf(equal, { ...bound, [dim]: { factor: 1, dims: [] } })
    const found = rest && dividedBy(whole, rest)
    if (found !== undefined) return found
  }
  return undefined
}

function productOf(count: Count, bound: Bound): Extent | undefined {
  if (typeof count === 'number') return { factor: count, dims: [] }
  if (typeof count === 'string') return getOwn(bound, count)
  const [operation, ...operands] = count
  const factors = operands.flatMap((operand) => productOf(operand, bound) ?? [])
  return operation === 'mul' && factors.length === operands.length ? multiplyExtents(factors) : undefined
}

function dividedBy(whole: Extent, by: Extent): Extent | undefined {
  const dims = [...whole.dims]
  for (const dim of by.dims) {
    const at = dims.indexOf(dim)
    if (at < 0) return undefined
    dims.splice(at, 1)
  }
  return by.factor > 0 && whole.factor % by.factor === 0 ? { factor: whole.factor / by.factor, dims } : undefined
}
