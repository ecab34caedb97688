/** Groups of a search on an open device: their kernels, which are derived, written and compiled together, and their check against their nodes. */
import type { PriceType } from '../../cost/device.js'
import type { LayoutsByName } from '../../fuse/graph/edit.js'
import type { PlannedKernel } from '../../fuse/planned_kernel.js'
import type { Kernel } from '../../ir/kernel.js'
import { demandedKernels } from '../../runtime/demand.js'
import type { Layouts } from '../../runtime/layouts.js'
import type { KernelSource } from '../../runtime/library.js'
import type { NativeDevice } from '../../runtime/native.js'
import type { Tuning } from '../../schedule/tuning/tuning.js'
import type { Launch } from '../../search/price.js'
import type { Subject } from '../../search/problem.js'
import type { Times } from '../../search/record.js'
import type { BuildProgress } from '../../toolchain/index.js'
import { prepareText } from '../../verify/check/prepare.js'
import { type Failure, failureOf } from './failures.js'
import { type Built, builtOf, type LaunchBench, whyWrong } from './launch.js'

/** A device, and what its kernels are made of. */
export interface SearchStage {
  readonly root: string
  readonly device: NativeDevice
  readonly ops: ReadonlyMap<string, Kernel>
  readonly byName: LayoutsByName
  readonly layouts: Layouts
  readonly tuning: Tuning | undefined
  readonly dtype: PriceType
  readonly repeats: number
  readonly signal: AbortSignal
  readonly onProgress?: ((progress: BuildProgress) => void) | undefined
}

/** Time of a group, or the reason why it has none. */
export type Timed = Times | Failure

/** Runs an action with the kernels of groups, which are compiled as they are requested. */
export async function withKernels<T>(
  stage: SearchStage,
  built: readonly Built[],
  action: (bench: LaunchBench, library: KernelSource) => Promise<T>,
): Promise<T> {
  const { root, device, tuning, dtype, repeats, signal, onProgress, layouts } = stage
  const kernels = new Map<string, PlannedKernel>(
    built.flatMap(({ kernel }) => (kernel === undefined ? [] : [[kernel.name, kernel]])),
  )
  const options = { dtypes: [dtype, ...fixedTypes], tuning: tuningOf(tuning), alone: true }
  const text = await prepareText(root, { graphs: {}, schedules: {} }, [...kernels.values()], options)
  try {
    const library = demandedKernels(device, text.searched, { root, signal, onProgress })
    return await action({ device, library, manifest: text.searched.manifest, layouts, dtype, repeats, signal }, library)
  } finally {
    await text.remove()
  }
}

/** Storage types of parameters that are no floats of the graph. */
export const fixedTypes = ['i32'] as const

/** Matmul algorithms of a tuning file; its schedules are for kernels of other names. */
const tuningOf = (tuning: Tuning | undefined): Tuning | undefined =>
  tuning === undefined ? undefined : { ...tuning, entries: [] }

/** Keys of the instances that a group launches. */
export const keysOf = ({ kernel }: Built, { manifest }: LaunchBench): readonly string[] =>
  kernel === undefined ? [] : manifest.kernels.filter(({ op }) => op === kernel.name).map(({ key }) => key)

/** Groups that can be derived on their own; the others are seen as refused. */
export function derivedOf(
  { ops, byName, signal }: SearchStage,
  subjects: readonly Subject[],
  seen: (subject: Subject, timed: Failure) => void,
): readonly Built[] {
  return subjects.flatMap((subject) => {
    try {
      return [builtOf(subject, ops, byName)]
    } catch (error) {
      seen(subject, failureOf(error, signal))
      return []
    }
  })
}

/** Groups whose results differ from their nodes', on the host or on the device, with the reason. @throws the signal's reason; environment */
export async function wrongSubjects(
  stage: SearchStage,
  subjects: readonly Subject[],
): Promise<readonly { readonly launch: Launch; readonly reason: string }[]> {
  const wrong: { launch: Launch; reason: string }[] = []
  const built = derivedOf(stage, subjects, ({ launch }, timed) => {
    if ('refused' in timed) wrong.push({ launch, reason: timed.refused })
  })
  await withKernels(stage, built, async (bench, library) => {
    for (const each of built) {
      stage.signal.throwIfAborted()
      const { launch } = each.subject
      try {
        each.verify()
        await library.ensure(keysOf(each, bench))
        const reason = await whyWrong(bench, each, stage.ops)
        if (reason !== undefined) wrong.push({ launch, reason })
      } catch (error) {
        const failure = failureOf(error, stage.signal)
        // Checks are small: a machine that has no room for them cannot go on.
        if ('skipped' in failure) throw error
        wrong.push({ launch, reason: failure.refused })
      }
    }
  })
  return wrong
}
