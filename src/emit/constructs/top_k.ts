/**
 * A ranking as CUDA text: every lane offers the elements of its chunk, all lanes of a row together, and what is left after the last
 * chunk lies in shared memory, where the passes after it read it at any place.
 */
import type { Ranking } from '../../schedule/normal.js'
import { expressionText } from '../expression.js'
import type { PassText } from './construct.js'

export const rankingText: PassText<Ranking> = {
  header: 'top_k.cuh',
  write(ranking, { context, first }) {
    const { names, shared } = context
    const name = names.value(ranking.name)
    const [lanes, offers, places] = [names.fresh(`${name}_lanes`), names.fresh(`${name}_offers`), names.fresh(`${name}_places`)]
    return {
      declare: () => [
        `heddle::Largest<Team, ${ranking.count}> ${lanes};`,
        `HEDDLE_SHARED(heddle::Placed<float>, ${places}, decltype(${lanes})::places);`,
      ],
      // None is offered yet.
      openChunk: () => [`heddle::Offers<VEC> ${offers};`],
      element: () => [`${offers}.value[i] = ${expressionText(ranking.value, context)};`],
      // What is larger than the smallest so far is taken in.
      leaveChunk: () => [`${lanes}.take(team, ${offers}, ${first});`],
      finish: () => {
        shared?.set(ranking.name, `${name}.value`)
        shared?.set(ranking.indices, `${name}.index`)
        return [`const auto ${name} = ${lanes}.finish(team, ${places});`]
      },
    }
  },
}
