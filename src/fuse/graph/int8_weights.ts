/**
 * Int8 weights of a graph. Each output channel has its own scale; the scales are an additional weight. A scale may be multiplied by the scale of
 * the other operand, where that is an attribute.
 */
import { usageError } from '../../errors.js'
import { type Graph, type GraphNode, type GraphValue, inputsOf, type NodeOf, type ValueId } from '../../ir/graph.js'
import { scalesName } from '../../lang/node_names.js'
import { aliasesOf, pushValue, valueAt } from './edit.js'

type Matmul = NodeOf<'matmul'>

export class Int8Weights {
  readonly #graph: Graph
  readonly #plan: string
  readonly #layout: string
  readonly #values: GraphValue[]
  /** Matmuls that read weights as int8. */
  readonly #readers: (node: GraphNode) => boolean
  /** All weights of the new graph. */
  readonly weights: Record<string, ValueId>
  readonly steps: Record<string, NonNullable<Graph['steps']>[string]> = {}

  /** @param layout storage layout of int8 weights @param values those of the new graph */
  constructor(graph: Graph, plan: string, layout: string, values: GraphValue[], readers: (node: GraphNode) => boolean) {
    this.#graph = graph
    this.#plan = plan
    this.#layout = layout
    this.#values = values
    this.#readers = readers
    this.weights = { ...graph.weights }
  }

  /**
   * The scales of a matmul's weight, times an attribute, if given; the weight becomes int8.
   * @throws usage `plan.quantised` for a weight that is multiplied by values of different scales or is read as floats too, and where its rows are
   * not the matmul's columns
   */
  take(matmul: Matmul, weight: string, times?: string): ValueId {
    const name = scalesName(weight)
    const known = this.steps[name]
    if (known !== undefined && known.times !== times)
      throw this.#refuse(
        `${matmul.name} multiplies ${weight} by a value of another scale than before`,
        'multiply a weight by one quantised value only',
        [matmul.name],
      )
    this.#checkColumns(matmul, weight)
    this.#checkReaders(matmul, weight)
    const id = this.weights[weight] ?? -1
    const value = valueAt(this.#values, id)
    this.#values[id] = { ...value, dtype: 'i8', layout: this.#layout }
    const made = this.weights[name]
    if (made !== undefined) return made
    const steps = pushValue(this.#values, { dtype: 'f32', shape: value.shape.slice(0, 1), layout: 'row' })
    this.weights[name] = steps
    this.steps[name] = { weight, ...(times === undefined ? {} : { times }) }
    return steps
  }

  /** Scales belong to a weight's rows, so these have to be the columns of the matmul. */
  #checkColumns({ name, subscripts: { a, b, out } }: Matmul, weight: string): void {
    const [channels, ...summed] = b
    if (channels !== undefined && out.at(-1) === channels && !a.includes(channels) && summed.every((axis) => !out.includes(axis)))
      return
    throw this.#refuse(
      `${name} multiplies "${a.join(' ')}, ${b.join(' ')} -> ${out.join(' ')}", and rows of ${weight} have a scale each`,
      'an int8 weight has its output channels first, and they are the last axis of the matmul',
      [name],
    )
  }

  #checkReaders({ name }: Matmul, weight: string): void {
    const seen = aliasesOf(this.#graph.nodes, this.#graph.weights[weight] ?? -1)
    const other = this.#graph.nodes.find(
      (node) => node.kind !== 'view' && inputsOf(node).some((id) => seen.has(id)) && !this.#readers(node),
    )
    if (other === undefined) return
    throw this.#refuse(`${name} multiplies ${weight} as int8, and ${other.name} reads it as floats`, 'a weight is stored once', [
      name,
      other.name,
    ])
  }

  #refuse(reason: string, hint: string, nodes: readonly string[]): Error {
    return usageError('plan.quantised', `plan ${this.#plan}: ${reason}`, { hint, about: { nodes } })
  }
}
