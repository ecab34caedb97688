/**
 * What is refused in one declaration, all of it: a statement, field or argument that is refused does not stop those beside it, and what needs
 * one that was refused ends without a word. Runs while a declaration is read; whoever asked for it gets everything at once.
 */
import { Rejection } from './diagnostics.js'

/** Unwinds what needs something that has been refused already: there is nothing more to say. */
export class Reported extends Error {}

/** Ends the reading of a declaration of which at least one thing was refused. */
export class Refused extends Error {
  readonly rejections: readonly Rejection[]

  constructor(rejections: readonly Rejection[]) {
    super(rejections[0]?.message)
    this.rejections = rejections
  }
}

const isAt = (a: Rejection, b: Rejection): boolean =>
  a.node.getSourceFile() === b.node.getSourceFile() &&
  a.node.getStart() === b.node.getStart() &&
  a.node.getEnd() === b.node.getEnd()

export class Refusals {
  readonly #found: Rejection[] = []

  /** How much was refused so far. */
  get count(): number {
    return this.#found.length
  }

  /** Forgets what was refused since there were so many. */
  forget(count: number): void {
    this.#found.length = count
  }

  /** What an action returns; undefined where it is refused, which is kept. What is too large ends everything: more would follow from it. */
  attempt<T>(action: () => T): T | undefined {
    try {
      return action()
    } catch (error) {
      if (error instanceof Rejection && error.refusal !== 'size') this.#keep(error)
      else if (!(error instanceof Reported)) throw error
      return undefined
    }
  }

  /** What an action returns. @throws Refused with all that was refused in it and before */
  finish<T>(action: () => T): T {
    try {
      const result = action()
      if (this.#found.length === 0) return result
    } catch (error) {
      if (error instanceof Rejection) this.#keep(error)
      else if (!(error instanceof Reported)) throw error
    }
    throw new Refused(this.#found)
  }

  /** One refusal of a place: what a function is refused for is the same wherever it is called. */
  #keep(rejection: Rejection): void {
    if (!this.#found.some((other) => isAt(other, rejection))) this.#found.push(rejection)
  }
}
