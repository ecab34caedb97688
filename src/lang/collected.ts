/**
 * Refusals of graphs and plans that whoever reads a whole project collects, so that one does not hide the others. Declaring is running a
 * module: without a reader the first refusal ends it, as errors do.
 */
import { HeddleError } from '../errors.js'

/** Found by its name: a project has a copy of heddle of its own. */
const key = Symbol.for('heddle.collected')

const collected = (): unknown[] | undefined => {
  const found: unknown = Reflect.get(globalThis, key)
  return Array.isArray(found) ? found : undefined
}

/** True if somebody collects refusals, so that what is declared may go on after one. */
export const isCollected = (): boolean => collected() !== undefined

/** What an action returns, and what was refused in it by `declaring`. What it ends in counts too, unless that follows from something refused. */
export async function collecting<T>(
  action: () => Promise<T>,
): Promise<{ readonly value?: T; readonly refused: readonly unknown[] }> {
  const refused: unknown[] = []
  Reflect.set(globalThis, key, refused)
  // The author's line stands in the stack below what builds a graph.
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

/** What an action declares; where it is refused and somebody collects, what `otherwise` puts in its place. */
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
