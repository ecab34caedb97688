/**
 * A ranking as CUDA text: every lane offers the elements of its chunk, all lanes of a row together, and what is left after the last
 * chunk lies in shared memory, where the passes after it read it at any place.
 */
import type { Ranking } from '../schedule/normal.js'
import type { Pass } from '../schedule/passes.js'
import { expressionText, type Scope } from './expression.js'

/** A ranking of the pass being written, and its variables. */
export interface WrittenRanking {
  readonly ranking: Ranking
  readonly lanes: string
  readonly offers: string
  readonly places: string
}

/** Names the variables of a pass' rankings. */
export const rankingsOf = (pass: Pass, { names }: Scope): WrittenRanking[] =>
  pass.rankings.map((ranking) => {
    const name = names.value(ranking.name)
    return {
      ranking,
      lanes: names.fresh(`${name}_lanes`),
      offers: names.fresh(`${name}_offers`),
      places: names.fresh(`${name}_places`),
    }
  })

/** Declares what outlives a chunk. */
export const declareLines = ({ ranking: { count }, lanes, places }: WrittenRanking): string[] => [
  `heddle::Largest<Team, ${count}> ${lanes};`,
  `HEDDLE_SHARED(heddle::Placed<float>, ${places}, decltype(${lanes})::places);`,
]

/** Before the elements of a chunk: none is offered yet. */
export const chunkLine = ({ offers }: WrittenRanking): string => `heddle::Offers<VEC> ${offers};`

/** Offers one element. */
export const offerLine = ({ ranking, offers }: WrittenRanking, scope: Scope): string =>
  `${offers}.value[i] = ${expressionText(ranking.value, scope)};`

/** After the elements of a chunk: what is larger than the smallest so far is taken in. */
export const takeLine = ({ lanes, offers }: WrittenRanking, first: string): string => `${lanes}.take(team, ${offers}, ${first});`

/** After the last chunk; from here on, elements of the ranking's rows can be read. */
export function finishLine({ ranking, lanes, places }: WrittenRanking, { names, shared }: Scope): string {
  const name = names.value(ranking.name)
  shared?.set(ranking.name, `${name}.value`)
  shared?.set(ranking.indices, `${name}.index`)
  return `const auto ${name} = ${lanes}.finish(team, ${places});`
}
