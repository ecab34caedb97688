/**
 * Source of instances, emitted once per kernel: the cache returns the source of an earlier run for the same kernel, types, schedule and
 * measurements. Each kernel sees its own measurements only, so that those of others do not count as a change.
 */

import { getOwn } from '../ir/get_own.js'
import type { Instance } from '../ir/instance.js'
import type { Kernel } from '../ir/kernel.js'
import { structuralHash } from '../ir/structural_hash.js'
import type { TemplateKernel } from '../ir/template.js'
import type { Schedule } from '../lang/plan.js'
import type { Memo } from '../memo.js'
import type { Note } from '../schedule/notes/notes.js'
import type { TunedTile } from '../schedule/tuning/tuned_tiles.js'
import type { Tuning } from '../schedule/tuning/tuning.js'
import type { ManifestFacts } from './manifest/facts.js'
import { templatesDigest } from './templates.js'

/** An instance of either kind, with its source. */
export interface Written {
  readonly kernel: Kernel | TemplateKernel
  readonly types: Instance['types']
  readonly dims: Instance['dims']
  readonly key: string
  readonly variants: readonly { readonly name: string; readonly schedule: string; readonly when: string }[]
  /** For a template kernel: its measured tiles. */
  readonly tiles?: readonly TunedTile[]
  readonly text: string
  /** For a row program: its performance notes. */
  readonly notes?: readonly Note[]
  /** Manifest facts of its kernel, if they are known already. */
  readonly facts?: ManifestFacts
}

/** Emitted parts of an instance. */
type Made = Omit<Written, 'kernel' | 'types' | 'dims'>

type Typed = Pick<Written, 'kernel' | 'types'> & { readonly dims?: Instance['dims'] }

interface TextOptions {
  readonly tuning: Tuning | undefined
  readonly schedules: Readonly<Record<string, Schedule>>
  readonly kept: Memo
}

/** @param make emits one instance, given the measurements and schedule of its kernel */
export function textsOf<I extends Typed>(
  instances: readonly I[],
  { tuning, schedules, kept }: TextOptions,
  make: (instance: I, tuning: Tuning | undefined, schedule: Schedule | undefined) => Made,
): Written[] {
  const byKernel = new Map<Typed['kernel'], I[]>()
  for (const instance of instances) byKernel.set(instance.kernel, [...(byKernel.get(instance.kernel) ?? []), instance])
  return [...byKernel].flatMap(([kernel, all]) => {
    const measured = tuning && { ...tuning, entries: tuning.entries.filter((entry) => entry.kernel === kernel.name) }
    const schedule = getOwn(schedules, kernel.name)
    const choices = all.map(({ types, dims = {} }) => ({ types, dims }))
    const follows = [
      templatesDigest(),
      structuralHash(kernel),
      structuralHash(choices),
      structuralHash(measured),
      structuralHash(schedule),
    ]
    const made = kept.of('text', follows, () => all.map((instance) => make(instance, measured, schedule)))
    return made.map((each, i): Written => ({ kernel, types: choices[i]?.types ?? {}, dims: choices[i]?.dims ?? {}, ...each }))
  })
}
