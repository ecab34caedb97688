/** Graph applications: a program is a sequence of them, wired to each other and to a model's tensors. */
import type { Graph } from '../ir/graph.js'
import type { DTypeRef } from '../ir/kernel.js'
import type { Extent } from '../ir/shape.js'

/** One application of a graph in a program. Program values are named; a graph's inputs and outputs are wired through these names. */
export interface GraphApplication {
  /** Names the application in step labels: `layer0`. */
  readonly label: string
  readonly graph: Graph
  /** Graph input to program value. */
  readonly inputs: Readonly<Record<string, string>>
  /** Graph weight to tensor name. */
  readonly weights: Readonly<Record<string, string>>
  /** Graph output to program value. */
  readonly outputs: Readonly<Record<string, string>>
  readonly attrs: Readonly<Record<string, number>>
  /** The graph's dimensions and type parameters in terms of the program's; those that map to the same name are omitted. */
  readonly dims?: Readonly<Record<string, Extent>>
  readonly types?: Readonly<Record<string, DTypeRef>>
}
