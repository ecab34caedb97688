/** Progress of a search: the space, each measured group, and after each round the best plan so far and the time left. */
import type { SearchRun } from '../bench/search/run_types.js'
import type { Space } from '../search/space.js'
import type { CliContext } from './context.js'

interface Timing {
  /** Time of the start, and the milliseconds in which groups are measured. */
  readonly start: number
  readonly limit: number
  readonly shapes: readonly string[]
}

const micro = 1e6

/** Observer of a search that prints to the log. */
export function searchProgress(
  { log }: CliContext,
  { start, limit, shapes }: Timing = { start: 0, limit: 0, shapes: [] },
): Required<Pick<SearchRun, 'onRound' | 'onStage'>> & { readonly onSpace: (space: Space) => void } {
  return {
    onSpace: ({ candidates, groups, refused, complete }) =>
      log(
        `${candidates.nodes.length} nodes, ${groups.length} groups, ${refused.length} merges are not possible${complete ? '' : '; too many to try them all'}\n`,
      ),
    onStage: (stage) => log(`${stage}\n`),
    onRound: ({ round, measured, launches, best }, result) => {
      if (result !== undefined) {
        const { entry } = result
        const time = entry.median === undefined ? `not possible: ${entry.refused}` : `${entry.median} us`
        log(`  ${entry.group} ${entry.sizes.join('x')}: ${time}\n`)
        return
      }
      const left = Math.max(0, Math.round((start + limit - performance.now()) / 1000))
      const times = best.map(
        ({ cost }, shape) => `${shapes.length > 1 ? `${shapes[shape]} ` : ''}${(cost * micro).toFixed(1)} us`,
      )
      log(`round ${round}: ${measured} of ${launches} measured, best so far ${times.join(', ')}; ${left} s left\n`)
    },
  }
}
