/** Weights of a program under construction: their names, types and shapes. */
import { usageError } from '../../errors.js'
import { getOwn, isInherited } from '../../ir/get_own.js'
import type { GraphValue } from '../../ir/graph.js'
import { expectArguments } from '../arguments.js'
import { describe, missing } from './checks.js'
import type { ProgramWeights } from './types.js'

/** Weights below a prefix. @throws usage `program.config` for a name that is not a string */
export function weightsBelow(prefix: string): ProgramWeights {
  const of = (name: string): ProgramWeights => {
    expectArguments('program.config', `weights below ${prefix}`, of, { name: [name, 'text'] })
    return weightsBelow(`${prefix}.${name}`)
  }
  return { prefix, of }
}

export const isWeights = (weights: ProgramWeights | Readonly<Record<string, string>>): weights is ProgramWeights =>
  typeof weights.of === 'function'

export class WeightNames {
  readonly all: Record<string, GraphValue> = {}
  /** The graph that uses a weight, by a prefix. */
  readonly #takenBy = new Map<string, string>()

  /** Name of a weight in the program. */
  take(
    at: string,
    graph: string,
    name: string,
    weights: ProgramWeights | Readonly<Record<string, string>>,
    value: GraphValue,
  ): string {
    const below = isWeights(weights)
    const found = below ? `${weights.prefix}.${name}` : (getOwn(weights, name) ?? missing(at, 'weight', name))
    if (isInherited(found)) throw usageError('program.name', `${at}: a weight cannot be called ${found}`)
    const other = this.#takenBy.get(found)
    if (below && other !== undefined && other !== graph) {
      throw usageError('program.weight', `${at}: weight ${found} already belongs to ${other}`, {
        hint: 'use weights below another prefix (weights.of), or share one by its name: { gamma: "..." }',
      })
    }
    if (below) this.#takenBy.set(found, graph)
    const known = getOwn(this.all, found)
    if (known !== undefined && describe(known) !== describe(value))
      throw usageError('program.weight', `${at}: weight ${found} is ${describe(value)} here, and ${describe(known)} before`)
    this.all[found] = value
    return found
  }
}
