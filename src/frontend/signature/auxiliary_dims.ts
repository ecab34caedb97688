/**
 * Dimensions that only facts name: `n: '4*u'` states that 4 divides n, and `k: '2*u'` in addition that k is half of n. No kernel has them; their
 * facts are rewritten as facts of dimensions that tensors or the body have.
 */
import { type Count, type Domain, type ExtentFact, type Facts, namesOf } from '../../ir/facts/facts.js'
import { factorOf } from '../../ir/facts/multiples.js'

type DimFacts = Facts['dims']

/** A dimension in terms of another, with the fact that remains for the other. */
interface Solution {
  readonly of: string
  readonly is: Count
  readonly rest: ExtentFact
}

const without = ({ equal: _, ...rest }: ExtentFact): ExtentFact => rest

/** Factor of a name in a product of it and numbers. */
function factorBeside(name: string, equal: Count): number | undefined {
  const factor = factorOf(equal)
  return factor !== undefined && factor > 0 && namesOf(equal).join() === name ? factor : undefined
}

/** Number that a sum adds to a name. */
function addendBeside(name: string, equal: Count): number | undefined {
  if (typeof equal !== 'object' || equal[0] !== 'add' || equal.length !== 3) return undefined
  const [, a, b] = equal
  const other = a === name ? b : b === name ? a : undefined
  return typeof other === 'number' ? other : undefined
}

function solutionOf(name: string, facts: DimFacts, known: (dim: string) => boolean): Solution | undefined {
  const own = facts[name] ?? {}
  for (const [of, fact] of Object.entries(facts)) {
    const { equal } = fact
    if (equal === undefined || !known(of)) continue
    const { multipleOf = 1, atLeast, atMost } = own
    const [factor, addend] = [factorBeside(name, equal), addendBeside(name, equal)]
    if (factor !== undefined) {
      const times = (count: Count): Count => (factor === 1 ? count : ['mul', factor, count])
      const divisor = factor * multipleOf
      const bounds = {
        ...(divisor === 1 ? {} : { multipleOf: divisor }),
        ...(atLeast === undefined ? {} : { atLeast: times(atLeast) }),
        ...(atMost === undefined ? {} : { atMost: times(atMost) }),
      }
      return { of, is: factor === 1 ? of : ['idiv', of, factor], rest: { ...without(fact), ...bounds } }
    }
    if (addend !== undefined && own.multipleOf === undefined) {
      const more = (count: Count): Count => ['add', count, addend]
      const bounds = {
        atLeast: more(atLeast ?? 0),
        ...(atMost === undefined ? {} : { atMost: more(atMost) }),
      }
      return { of, is: ['sub', of, addend], rest: { ...without(fact), ...bounds } }
    }
  }
  return undefined
}

function replaced(count: Count, name: string, by: Count): Count {
  if (typeof count === 'string') return count === name ? by : count
  if (typeof count === 'number') return count
  const [operation, ...operands] = count
  return [operation, ...operands.map((operand) => replaced(operand, name, by))]
}

function inFact(fact: ExtentFact, change: (count: Count) => Count): ExtentFact {
  const { equal, atLeast, atMost } = fact
  return {
    ...fact,
    ...(equal === undefined ? {} : { equal: change(equal) }),
    ...(atLeast === undefined ? {} : { atLeast: change(atLeast) }),
    ...(atMost === undefined ? {} : { atMost: change(atMost) }),
  }
}

function inDomain(domain: Domain, change: (count: Count) => Count): Domain {
  const { from, to, packed } = domain
  return {
    ...domain,
    ...(from === undefined ? {} : { from: from.map(change) }),
    ...(to === undefined ? {} : { to: to.map(change) }),
    ...(packed === undefined
      ? {}
      : {
          packed: {
            ...packed,
            batch: change(packed.batch),
            rows: change(packed.rows),
            ...(packed.seq === undefined ? {} : { seq: change(packed.seq) }),
          },
        }),
  }
}

const mapped = <T>(record: Readonly<Record<string, T>>, change: (value: T) => T): Record<string, T> =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]))

/**
 * Facts without the auxiliary dimensions, if these follow from others.
 * @param unused dimensions that no tensor and no body has
 * @param used dimensions that a tensor or the body has
 * @returns the facts, and the removed dimensions
 * @example n: '4*u', k: '2*u' becomes n: { multipleOf: 4 }, k: 2 * (n / 4)
 */
export function withoutAuxiliary(
  facts: Facts,
  unused: readonly string[],
  used: ReadonlySet<string>,
): { readonly facts: Facts; readonly freed: readonly string[] } {
  const freed: string[] = []
  let made = facts
  for (const name of unused) {
    const stated = made.dims[name]?.equal
    const solution = stated === undefined ? solutionOf(name, made.dims, (dim) => used.has(dim)) : undefined
    const is = stated ?? solution?.is
    if (is === undefined || !Object.values(made.dims).some(({ equal }) => equal !== undefined && namesOf(equal).includes(name)))
      continue
    const change = (count: Count): Count => replaced(count, name, is)
    const { [name]: _, ...others } = made.dims
    const dims = solution === undefined ? others : { ...others, [solution.of]: solution.rest }
    made = {
      ...made,
      dims: mapped(dims, (fact) => inFact(fact, change)),
      inputs: mapped(made.inputs, (domain) => inDomain(domain, change)),
    }
    freed.push(name)
  }
  return { facts: made, freed }
}
