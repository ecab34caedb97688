/** The text of an instance with the lines of specs that each of its lines was made of: what `gen` writes, made once more and traced. */

import { getOwn } from '../ir/get_own.js'
import { allInstances, instanceKey } from '../ir/instance.js'
import type { Kernel } from '../ir/kernel.js'
import { isTemplate, type TemplateKernel } from '../ir/template.js'
import { type TracedText, traced } from '../ir/trace.js'
import type { Schedule } from '../lang/plan.js'
import { mapKernel } from '../schedule/map.js'
import type { Tuning } from '../schedule/tuning.js'
import { emitInstance, emitTemplate } from './generate.js'
import { templateInstances } from './template.js'

/** What texts follow from besides kernels. */
export interface TextChoices {
  readonly tuning: Tuning | undefined
  readonly schedules: Readonly<Record<string, Schedule>>
}

/** @returns undefined where the kernel has no instance of this key any more */
export function tracedText(
  kernel: Kernel | TemplateKernel,
  key: string,
  { tuning, schedules }: TextChoices,
): TracedText | undefined {
  const measured = tuning && { ...tuning, entries: tuning.entries.filter((entry) => entry.kernel === kernel.name) }
  if (isTemplate(kernel)) {
    const instance = templateInstances(kernel).find((each) => each.key === key)
    return instance && traced(() => emitTemplate(instance, { tuning: measured }))
  }
  const instance = allInstances(kernel).find(({ types, dims }) => instanceKey(kernel.name, types, dims) === key)
  if (instance === undefined) return undefined
  const mapped = mapKernel(instance, measured, getOwn(schedules, kernel.name))
  return traced(() => emitInstance(mapped))
}
