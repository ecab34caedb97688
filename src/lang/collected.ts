/**
 * Collection of errors in graphs and plans while a whole project is read, so that one does not hide the others. Declarations run as part
 * of a module: without a collector the first error ends it, as usual.
 */
import { HeddleError } from '../errors.js'

/** A registered symbol, since a project has its own copy of heddle. */
const key = Symbol.for('heddle.collected')

const collected = (): unknown[] | undefined => {
  const found: unknown = Reflect.get(globalThis, key)
  return Array.isArray(found) ? found : undefined
}

/** True if errors are collected, so that a declaration may continue after one. */
export const isCollected = (): boolean => collected() !== undefined

/** Runs an action; returns its result and the errors that `declaring` collected. An error that ends the action counts only if none came before. */
export async function collecting<T>(
  action: () => Promise<T>,
): Promise<{ readonly value?: T; readonly refused: readonly unknown[] }> {
  const refused: unknown[] = []
  Reflect.set(globalThis, key, refused)
  // The author's line is in the stack below the frames of the graph builder.
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 50
  try {
    return { value: await action(), refused }
  } catch (error) {
    return { refused: refused.length === 0 ? [error] : refused }
  } finally {
    Error.stackTraceLimit = stackTraceLimit
    Reflect.deleteProperty(globalThis, key)
  }
}

/** Runs a declaration; if it is refused and errors are collected, returns the result of `otherwise` instead. */
export function declaring<T>(action: () => T, otherwise: () => T): T {
  try {
    return action()
  } catch (error) {
    const list = collected()
    if (list === undefined || !(error instanceof HeddleError)) throw error
    list.push(error)
    return otherwise()
  }
}
