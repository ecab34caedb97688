/** Source of an instance with the spec lines that each of its lines was made from: the source that `gen` writes, emitted again with tracing. */

import { getOwn } from '../ir/get_own.js'
import { allInstances, instanceKey } from '../ir/instance.js'
import type { Kernel } from '../ir/kernel.js'
import { isTemplate, type TemplateKernel } from '../ir/template.js'
import { type TracedText, traced } from '../ir/trace.js'
import type { Schedule } from '../lang/plan.js'
import { mapKernel } from '../schedule/map.js'
import type { Tuning } from '../schedule/tuning/tuning.js'
import { emitInstance, emitTemplate } from './generate.js'
import { templateInstances } from './kernels/template.js'

/** Inputs of emission besides kernels. */
export interface TextChoices {
  readonly tuning: Tuning | undefined
  readonly schedules: Readonly<Record<string, Schedule>>
}

/** @returns undefined if the kernel no longer has an instance of this key */
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
