/**
 * A limit for work that nothing else can end: a regular expression of a file may take longer than anyone waits, and while it runs Node
 * hears no signal. The virtual machine's watchdog ends it.
 */
import { type Context, createContext, Script } from 'node:vm'

const script = new Script('work()')

interface Call {
  work(): void
}

/** Made once: a context costs milliseconds, a call in it a tenth of one. */
let shared: { readonly call: Call; readonly context: Context } | undefined

function sharedContext(): { readonly call: Call; readonly context: Context } {
  const call: Call = { work: () => {} }
  shared ??= { call, context: createContext(call) }
  return shared
}

/**
 * The result of `work`, or undefined when it took longer than `milliseconds`: then it was ended where it was, and what it was changing
 * must not be used again.
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
    // The watchdog's error is made in the other context, where `Error` is another class.
    if (typeof error === 'object' && error !== null && 'code' in error && error.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') {
      return undefined
    }
    throw error
  } finally {
    // Nothing that a call holds outlives it.
    call.work = () => {}
  }
  return value
}
