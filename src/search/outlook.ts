/**
 * The promise of launches in a measured search: the cost of the cheapest cover that contains a group, if the group does as well as the best of its
 * kind, in relation to the best cover so far. Below one, measuring the group may change the plan; far above, no time is spent on it. Pure.
 */
import type { Problem } from './covers.js'
import type { Launch, Prices } from './price.js'
import { throughCosts } from './through.js'

export interface Outlook {
  /** Of the cheapest cover with the launch, if it does well. */
  readonly promise: number
  /** Of that cover at the price of the launch. */
  readonly through: number
}

/** @param least cost of the best cover at each shape; costs are in relation to it. Launches that are in no cover have no outlook. */
export function outlooksOf(
  { variants, shapes }: Problem,
  prices: Prices,
  least: readonly number[],
): ReadonlyMap<string, Outlook> {
  const outlooks = new Map<string, Outlook>()
  for (const { reads, groups } of variants) {
    for (const shape of shapes.keys()) {
      const launched = groups.flatMap(({ members, launches: { [shape]: launch } }) =>
        launch === undefined ? [] : [{ members, launch }],
      )
      const priced = launched
        .map((each) => ({ ...each, cost: prices.price(each.launch).seconds }))
        .filter(({ cost }) => Number.isFinite(cost))
      const best = least[shape] ?? 1
      for (const [at, cost] of throughCosts({ reads, choices: priced }).entries()) {
        const own = priced[at]
        if (own !== undefined)
          improve(outlooks, own.launch, cost / best, (cost - own.cost + prices.optimistic(own.launch)) / best)
      }
    }
  }
  return outlooks
}

function improve(outlooks: Map<string, Outlook>, { id }: Launch, through: number, promise: number): void {
  const known = outlooks.get(id)
  if (known === undefined || promise < known.promise) outlooks.set(id, { promise, through })
}
