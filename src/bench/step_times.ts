/** Times of a program's steps, by kernel. */
import type { Program } from '../runtime/program.js'
import type { StepTime } from './result.js'

/**
 * Sums the times of steps with the same kernel, the longest first.
 * @param times milliseconds of each step
 * @param passes number of repetitions in the program
 */
export function stepTimes({ steps }: Pick<Program, 'steps'>, times: ArrayLike<number>, passes = 1): StepTime[] {
  const byKernel = new Map<string, StepTime>()
  for (const [i, step] of steps.entries()) {
    // Matmuls have no kernel; the name of the node without its layer identifies them.
    const kernel = step.kernel ?? `${step.kind} ${step.label.replace(/^.*\//, '')}`
    const { count, milliseconds } = byKernel.get(kernel) ?? { count: 0, milliseconds: 0 }
    byKernel.set(kernel, { kernel, count: count + 1 / passes, milliseconds: milliseconds + (times[i] ?? 0) / passes })
  }
  return [...byKernel.values()].sort((a, b) => b.milliseconds - a.milliseconds)
}
