/** Explains reads of a body outside of a tensor, on data drawn by its facts. Runs while cases are prepared. */
import type { KernelEntry } from '../emit/manifest/manifest.js'
import { findingError, HeddleError } from '../errors.js'

/**
 * Runs an action and explains a read outside of a tensor by its facts: an input that may be as large as a dimension is not an index of it.
 * @throws finding `evaluate.bounds` with a hint for the correct fact
 */
export function locatingReads<T>(facts: KernelEntry['facts'], run: () => T): T {
  try {
    return run()
  } catch (error) {
    if (!(error instanceof HeddleError) || error.code !== 'evaluate.bounds' || error.hint !== undefined) throw error
    const found = Object.entries(facts?.inputs ?? {}).flatMap(([name, { from = [], to = [], also = [] }]) => {
      const dim = to.find((count) => typeof count === 'string')
      const besides = [...from.filter((count) => typeof count === 'number' && count < 0), ...also]
      const others = besides.length === 0 ? '' : `, also: [${besides.join(', ')}]`
      return dim === undefined ? [] : [{ name, dim, fact: `${name}: { index: '${dim}'${others} }` }]
    })
    const [first] = found
    if (first === undefined) throw error
    const hint = `${first.name} may be ${first.dim} itself by its fact; of an index of ${first.dim} elements write ${first.fact}`
    throw findingError('evaluate.bounds', `${error.message}: ${hint}`, { hint, cause: error })
  }
}
