/** A kernel at every stage, for the page: its texts and their shared names. */
import type { Kernel } from '../ir/kernel.js'
import { isTemplate, type TemplateKernel } from '../ir/template.js'
import type { KernelView } from './model.js'
import { occupancyOf } from './occupancy.js'

/** Result of `heddle inspect`. */
interface Inspected {
  readonly key: string
  readonly source: { readonly file: string; readonly line: number }
  readonly body: string
  readonly ir: string
  readonly cuda: KernelView['cuda']
  readonly others: KernelView['others']
  readonly sass: KernelView['sass']
  readonly schedules: readonly { readonly kernel: string; readonly schedule: string; readonly when: string }[]
  readonly notes: readonly string[]
  readonly resources: readonly {
    readonly kernel: string
    readonly arch: string
    readonly registers: number
    readonly sharedBytes: number
    readonly stackBytes: number
    readonly spillStoreBytes: number
    readonly spillLoadBytes: number
    readonly threads?: number | undefined
  }[]
  readonly resourcesFrom: KernelView['resourcesFrom']
}

interface Stage {
  readonly pass: string
  readonly text: string
  readonly places?: readonly (readonly string[])[]
}

/** Names that IR statements bind: rows, lets, reductions. */
function namesBound(value: unknown, into: Set<string>): void {
  if (Array.isArray(value)) {
    for (const each of value) namesBound(each, into)
  } else if (typeof value === 'object' && value !== null) {
    const fields: Readonly<Record<string, unknown>> = { ...value }
    const { kind, name, type } = fields
    // Expressions have a type and mention names; statements bind them.
    const binds = typeof kind === 'string' && typeof name === 'string' && !mentions.has(kind)
    if (binds && (type === undefined || typeof type === 'string')) into.add(name)
    for (const each of Object.values(fields)) namesBound(each, into)
  }
}

/** Expressions that mention a name bound elsewhere. */
const mentions: ReadonlySet<string> = new Set(['dim', 'attr', 'index', 'local'])

/**
 * Names of tensors, attributes and values of a kernel. Lines are linked by their source locations. Lines without locations, such as declarations of
 * tensors, are linked by these names, which come from bodies and are preserved by passes and the emitter.
 */
export function namesOf(kernel: Kernel | TemplateKernel): string[] {
  const found = new Set<string>()
  for (const { name } of kernel.tensors) found.add(name)
  if (!isTemplate(kernel)) {
    for (const { name } of kernel.attrs) found.add(name)
    namesBound(kernel.body, found)
  }
  return [...found]
}

/** @param passes results of the passes; empty for a kernel without passes, which shows its IR only */
export function kernelView(found: Inspected, names: readonly string[], passes: readonly Stage[] = []): KernelView {
  const { key, source, body, others, ir, cuda, sass, schedules, notes, resources, resourcesFrom } = found
  return {
    key,
    source: `${source.file}:${source.line}`,
    body,
    others,
    stages:
      passes.length === 0
        ? [{ pass: 'IR', text: ir, places: [] }]
        : passes.map(({ pass, text, places = [] }) => ({ pass, text, places: places.map((each) => [...each]) })),
    cuda,
    sass,
    names: [...names],
    schedules: schedules.map(({ kernel, schedule, when }) => ({ kernel, schedule, when })),
    notes: [...notes],
    resources: resources.map(
      ({ kernel, arch, registers, sharedBytes, stackBytes, spillStoreBytes, spillLoadBytes, threads = 0 }) => {
        const occupancy = threads === 0 ? undefined : occupancyOf(arch, threads, registers, sharedBytes)
        return {
          kernel,
          arch,
          registers,
          sharedBytes,
          stackBytes,
          spillBytes: spillStoreBytes + spillLoadBytes,
          ...(threads === 0 ? {} : { threads }),
          ...(occupancy === undefined ? {} : { occupancy: { ...occupancy, limitedBy: [...occupancy.limitedBy] } }),
        }
      },
    ),
    resourcesFrom: { ...resourcesFrom },
  }
}
