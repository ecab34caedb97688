/**
 * Unknown values of graphs and programs, whose node was refused. If errors are collected, a build function continues with
 * them, so that it reports every wrong node at once. Results computed from unknown values are unknown too, and cause no errors.
 */
import { HeddleError, together } from '../errors.js'
import type { ValueId } from '../ir/graph.js'

/** A value inside a graph under construction. */
export interface GraphTensor {
  readonly value: ValueId
}

/** Id of an unknown value. */
const noValue = -1

export class Unknowns {
  readonly #collects: boolean
  readonly #refused: HeddleError[] = []
  /** Unknown values, with the errors that caused them; none if the value only depends on another unknown one. */
  readonly #unknown = new Map<GraphTensor, readonly HeddleError[]>()

  constructor(collects: boolean) {
    this.#collects = collects
  }

  /** Errors, in the order in which they were found. */
  get refused(): readonly HeddleError[] {
    return this.#refused
  }

  has = (handle: GraphTensor): boolean => this.#unknown.has(handle)

  /** Makes a value that is unknown because of these errors, or of its operands. */
  make = (because: readonly HeddleError[] = []): GraphTensor => {
    const handle = { value: noValue }
    this.#unknown.set(handle, because)
    return handle
  }

  /** Result of an action; if it fails and errors are collected, the result of `otherwise` instead. */
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

  /** Result of an action. A `HeddleError` of it is appended to the earlier errors; if there are any, other errors are dropped as consequences. */
  ending<T>(action: () => T): T {
    try {
      return action()
    } catch (error) {
      if (this.#refused.length === 0) throw error
      const more = error instanceof HeddleError ? (error.all.length > 0 ? error.all : [error]) : []
      throw together([...this.#refused, ...more])
    }
  }

  /** Adds to each error the name of its node, now that names are known. */
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
