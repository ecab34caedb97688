/**
 * Collects all refusals of one declaration: a refused statement, field or argument does not stop its siblings, and code that depends on
 * a refused value ends without another error. Used while a declaration is read; the caller gets all refusals at once.
 */
import { Rejection } from './reject.js'

/** Aborts code that depends on an already refused value: there is nothing more to report. */
export class Reported extends Error {}

/** Aborts a declaration with at least one refusal. */
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

  /** Number of refusals so far. */
  get count(): number {
    return this.#found.length
  }

  /** Drops all refusals after the first `count`. */
  forget(count: number): void {
    this.#found.length = count
  }

  /** Returns the result of an action; undefined if it is refused, which is recorded. A size refusal is rethrown: more errors would follow from it. */
  attempt<T>(action: () => T): T | undefined {
    try {
      return action()
    } catch (error) {
      if (error instanceof Rejection && error.refusal !== 'size') this.#record(error)
      else if (!(error instanceof Reported)) throw error
      return undefined
    }
  }

  /** Returns the result of an action. @throws Refused with all refusals in it and before it */
  finish<T>(action: () => T): T {
    try {
      const result = action()
      if (this.#found.length === 0) return result
    } catch (error) {
      if (error instanceof Rejection) this.#record(error)
      else if (!(error instanceof Reported)) throw error
    }
    throw new Refused(this.#found)
  }

  /** Records one refusal per node: a function is refused for the same reason at every call. */
  #record(rejection: Rejection): void {
    if (!this.#found.some((other) => isAt(other, rejection))) this.#found.push(rejection)
  }
}

/** The refusals that an action throws; empty if it succeeds. */
export function refusalsOf(action: () => void): readonly Rejection[] {
  try {
    action()
    return []
  } catch (error) {
    if (error instanceof Rejection) return [error]
    if (error instanceof Refused) return error.rejections
    throw error
  }
}
