/** Constructs that lanes compute together, as the loop IR is evaluated: the elements that lanes have collected, and what they are searched for. */

import { sortPlaces } from '../ir/argsort.js'
import type { Value } from '../ir/constructs/construct.js'
import { mapNamed, teamOf } from '../ir/constructs/team_call.js'
import { evaluateExpr } from '../ir/evaluate.js'
import type { Expr } from '../ir/expr.js'
import { countValues } from '../ir/monoids.js'
import { rankValues } from '../ir/top_k.js'
import type { TeamScalar } from '../schedule/normalise/normal.js'
import { elementsOf } from './evaluate_combine.js'
import type { Lane, Row } from './evaluate_lane.js'
import type { Search } from './ir.js'

type Publish = (name: string, values: Value[]) => void

/** Collects the current element of a lane. */
export function collectSearch(stmt: Search['stmt'], lane: Lane): void {
  const elements = lane.collected.get(stmt) ?? []
  lane.collected.set(stmt, elements)
  elements.push({ at: lane.at, values: [Number(evaluateExpr(stmt.value, lane.env))] })
}

/** Publishes, or stores, the results of a search over a row. */
export function finishSearch(stmt: Search['stmt'], lanes: readonly Lane[], row: Row, publish: Publish): void {
  const values = elementsOf(stmt, lanes).map((element) => element.values[0] ?? Number.NaN)
  const at = (index: number): number => values[index] ?? Number.NaN
  switch (stmt.kind) {
    case 'argsort':
      publish(stmt.name, [...sortPlaces(values.length, at)])
      return
    case 'topK': {
      const ranking = rankValues(stmt.count, values.length, at)
      publish(stmt.name, [...ranking.values])
      publish(stmt.indices, [...ranking.indices])
      return
    }
    case 'counts':
    case 'histogram': {
      const [lane] = lanes
      if (lane === undefined) return
      const counts = [...countValues(Number(evaluateExpr(stmt.bins, lane.env)), values.length, at)]
      if (stmt.kind === 'counts') {
        publish(stmt.name, counts)
        return
      }
      for (const [bin, count] of counts.entries()) {
        lane.env.values.set(stmt.bin, bin)
        row.store(
          stmt.tensor,
          stmt.indices.map((e) => Number(evaluateExpr(e, lane.env))),
          count,
        )
      }
    }
  }
}

/** Computes a team scalar, which all lanes of the team receive. */
export function callTeam(stmt: TeamScalar, lane: Lane): void {
  const { env } = lane
  const number = (e: Expr): number => Number(evaluateExpr(e, env))
  const elements = mapNamed(stmt.elements, (e) => (at: number) => {
    env.values.set(stmt.index, at)
    return number(e)
  })
  env.values.set(stmt.name, teamOf(stmt).evaluate(number(stmt.length), mapNamed(stmt.scalars, number), elements))
}
