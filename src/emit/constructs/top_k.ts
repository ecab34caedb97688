/**
 * A ranking as CUDA source: in each chunk, all lanes of a row together offer their elements. After the last chunk the kept elements are in shared
 * memory, where later passes read them at any index.
 */
import type { Ranking } from '../../schedule/normalise/normal.js'
import { expressionText } from '../print/expression.js'
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
      // No element is offered yet.
      openChunk: () => [`heddle::Offers<VEC> ${offers};`],
      element: () => [`${offers}.value[i] = ${expressionText(ranking.value, context)};`],
      // Offers larger than the smallest kept element are inserted.
      leaveChunk: () => [`${lanes}.take(team, ${offers}, ${first});`],
      finish: () => {
        shared?.set(ranking.name, `${name}.value`)
        shared?.set(ranking.indices, `${name}.index`)
        return [`const auto ${name} = ${lanes}.finish(team, ${places});`]
      },
    }
  },
}
