/** What a program's steps take, by what they run. */
import type { Program } from '../runtime/program.js'
import type { StepTime } from './result.js'

/**
 * Adds the times of steps that run the same thing, the longest first.
 * @param times milliseconds of each step
 * @param passes how often the program repeats what is described
 */
export function stepTimes({ steps }: Pick<Program, 'steps'>, times: ArrayLike<number>, passes = 1): StepTime[] {
  const byKernel = new Map<string, StepTime>()
  for (const [i, step] of steps.entries()) {
    // Matmuls have no kernel; the name of the node without its layer tells what they multiply.
    const kernel = step.kernel ?? `${step.kind} ${step.label.replace(/^.*\//, '')}`
    const { count, milliseconds } = byKernel.get(kernel) ?? { count: 0, milliseconds: 0 }
    byKernel.set(kernel, { kernel, count: count + 1 / passes, milliseconds: milliseconds + (times[i] ?? 0) / passes })
  }
  return [...byKernel.values()].sort((a, b) => b.milliseconds - a.milliseconds)
}
