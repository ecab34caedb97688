/** Steps of a row as CUDA source: lowered to loops and printed. */
import type { Access } from '../../loop/ir.js'
import { partLoops } from '../../loop/pipeline.js'
import type { Pass, Step } from '../../schedule/normalise/passes.js'
import type { PassContext } from '../print/context.js'
import { printLoops } from '../print/loops.js'

/** Writes the steps of a program that is part of another. @param whole accesses that need no checks in the version for whole rows */
export function writeSteps(steps: readonly Step[], context: PassContext, whole?: (access: Access) => boolean): void {
  const frame = { ...context, mayBeEmpty: context.mayBeEmpty === true }
  printLoops(partLoops(steps, frame, whole), { ...context, isVersioned: whole !== undefined })
}

/** Writes one pass. */
export const writePass = (pass: Pass, context: PassContext, whole?: (access: Access) => boolean): void =>
  writeSteps([{ kind: 'pass', pass }], context, whole)
