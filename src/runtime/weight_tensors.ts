/**
 * Tensors of an application's weights: a tensor of the model, a concatenation of several, or either of these quantised to int8 with one scale per
 * row. Programs look tensors up by these names, and loading a model creates them.
 */
import { usageError } from '../errors.js'
import type { GraphApplication } from './application.js'

/** Recipe of a weight tensor of a program. */
export interface WeightSource {
  /** Unique among the tensors of a session. */
  readonly name: string
  /** Tensors of the model, concatenated along their first axis. */
  readonly parts: readonly string[]
  /** `int8`: quantised per row; `steps`: the scale of each row, times `factor`. Undefined: unchanged. */
  readonly made?: 'int8' | 'steps'
  readonly factor?: number
  /** Name of its storage layout. */
  readonly layout: string
}

/** @throws usage `program.wire` for a weight that is not wired, `program.attr` for scales without their factor */
export function weightSource(application: GraphApplication, weight: string): WeightSource {
  const { graph } = application
  const quantised = graph.steps?.[weight]
  const parts = partsOf(application, quantised?.weight ?? weight)
  const base = parts.join('+')
  if (quantised !== undefined) {
    const factor = quantised.times === undefined ? 1 : application.attrs[quantised.times]
    if (factor === undefined) throw usageError('program.attr', `${application.label}: attribute ${quantised.times} has no value`)
    return { name: `${base}:steps:${factor}`, parts, made: 'steps', factor, layout: 'row' }
  }
  const value = graph.values[graph.weights[weight] ?? -1]
  const layout = value?.layout ?? 'row'
  // A weight that the graph itself declares as int8 has no scales from a plan: its author provides the integers.
  const isMade = Object.values(graph.steps ?? {}).some((of) => of.weight === weight)
  return isMade ? { name: `${base}:int8:${layout}`, parts, made: 'int8', layout } : { name: base, parts, layout }
}

/** All weight tensors that an application reads. */
export const weightSources = (application: GraphApplication): WeightSource[] =>
  Object.keys(application.graph.weights).map((name) => weightSource(application, name))

const partsOf = ({ graph, label, weights }: GraphApplication, weight: string): readonly string[] =>
  (graph.stacked?.[weight] ?? [weight]).map((part) => {
    const wire = weights[part]
    if (wire === undefined) {
      throw usageError('program.wire', `${label}: weight ${part} is not wired`, {
        hint: `wired: ${Object.keys(weights).join(', ') || 'none'}`,
      })
    }
    return wire
  })
