/**
 * Defects of the compiler that a plan triggers. They are typed like a refusal, so that they are located in the plan, other plans are still
 * processed, and a search goes on without the group. The failure itself is kept for `--verbose`.
 */
import { HeddleError, usageError } from '../errors.js'

/**
 * Runs an action on a plan or a group.
 * @throws usage `plan.defect` for any error that is not a `HeddleError`
 */
export function withoutDefect<T>(subject: string, action: () => T): T {
  try {
    return action()
  } catch (error) {
    if (error instanceof HeddleError) throw error
    const message = error instanceof Error ? error.message : String(error)
    throw usageError('plan.defect', `${subject} ends in a defect of heddle: ${message.replace(/^internal: /, '')}`, {
      hint: 'leave the group out to go on, and report it with the spec; --verbose shows the stack',
      cause: error,
    })
  }
}
