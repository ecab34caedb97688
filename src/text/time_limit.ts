/**
 * A time limit for work that cannot be interrupted otherwise. A regular expression of a file may take exponential time, and while it runs Node
 * receives no signal. The virtual machine's watchdog ends it.
 */
import { type Context, createContext, Script } from 'node:vm'

const script = new Script('work()')

interface Call {
  work(): void
}

/** Created once: a context costs milliseconds, a call in it a tenth of one. */
let shared: { readonly call: Call; readonly context: Context } | undefined

function sharedContext(): { readonly call: Call; readonly context: Context } {
  const call: Call = { work: () => {} }
  shared ??= { call, context: createContext(call) }
  return shared
}

/**
 * The result of `work`, or undefined if it took longer than `milliseconds`. Then it was interrupted, and the data that it was changing must not be
 * used again.
 * @throws what `work` throws
 */
export function withinTime<T>(milliseconds: number, work: () => T): { readonly value: T } | undefined {
  let value: { readonly value: T } | undefined
  const { call, context } = sharedContext()
  call.work = () => {
    value = { value: work() }
  }
  try {
    script.runInContext(context, { timeout: milliseconds })
  } catch (error) {
    // The watchdog's error comes from the other context, where `Error` is another class.
    if (typeof error === 'object' && error !== null && 'code' in error && error.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') {
      return undefined
    }
    throw error
  } finally {
    // Drops references to the call's data.
    call.work = () => {}
  }
  return value
}
