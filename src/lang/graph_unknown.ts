/**
 * Values of graphs and programs that nothing is known of, since what should have made them was refused. Where refusals are collected, a build function goes on with
 * them, so that it is told of every wrong node in one go; what is made of such a value is unknown as well, and nothing is said of it.
 */
import { HeddleError, together } from '../errors.js'
import type { ValueId } from '../ir/graph.js'

/** A value inside a graph under construction. */
export interface GraphTensor {
  readonly value: ValueId
}

/** What is no value of the graph. */
const noValue = -1

export class Unknowns {
  readonly #collects: boolean
  readonly #refused: HeddleError[] = []
  /** Each unknown value, with the refusals that left it so; none where it only follows from another. */
  readonly #unknown = new Map<GraphTensor, readonly HeddleError[]>()

  constructor(collects: boolean) {
    this.#collects = collects
  }

  /** In the order in which they were found. */
  get refused(): readonly HeddleError[] {
    return this.#refused
  }

  has = (handle: GraphTensor): boolean => this.#unknown.has(handle)

  /** A value that is unknown because of these refusals, or of what it is made of. */
  make = (because: readonly HeddleError[] = []): GraphTensor => {
    const handle = { value: noValue }
    this.#unknown.set(handle, because)
    return handle
  }

  /** What an action returns; where it is refused and that is collected, what `otherwise` puts in its place. */
  attempt<T>(action: () => T, otherwise: (because: readonly HeddleError[]) => T): T {
    if (!this.#collects) return action()
    try {
      return action()
    } catch (error) {
      if (!(error instanceof HeddleError)) throw error
      const found = error.all.length > 0 ? error.all : [error]
      this.#refused.push(...found)
      return otherwise(found)
    }
  }

  /** What an action makes. What it ends in stands behind what was refused before; where something was, any other error follows from that. */
  ending<T>(action: () => T): T {
    try {
      return action()
    } catch (error) {
      if (this.#refused.length === 0) throw error
      const more = error instanceof HeddleError ? (error.all.length > 0 ? error.all : [error]) : []
      throw together([...this.#refused, ...more])
    }
  }

  /** Tells each refusal the node that it is of, now that names are known. */
  name(nodes: Readonly<Record<string, GraphTensor>>): void {
    for (const [name, handle] of Object.entries(nodes)) {
      for (const error of this.#unknown.get(handle) ?? []) {
        if (error.about?.nodes !== undefined) continue
        error.about = { ...error.about, nodes: [name] }
        error.message = `node ${name}: ${error.message}`
      }
    }
  }
}
