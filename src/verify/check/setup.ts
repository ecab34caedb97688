/**
 * Shared setup of checks of a project's kernels against their bodies: specs as kernels, the source of the chosen ones, bodies, and
 * an open device. `heddle check` and `heddle repro` use it.
 */
import type { KernelEntry } from '../../emit/manifest/manifest.js'
import type { PlannedKernel } from '../../fuse/planned_kernel.js'
import type { DType } from '../../ir/dtype.js'
import type { Graph } from '../../ir/graph.js'
import { nodesAtAnyRows } from '../../ir/graph_rows.js'
import { kernelName } from '../../ir/op_name.js'
import type { Op } from '../../lang/types.js'
import { demandedKernels } from '../../runtime/demand.js'
import type { DeviceKind, DeviceName } from '../../runtime/device.js'
import { parseDevice } from '../../runtime/device_name.js'
import { type LoweredByName, loweredSource } from '../../runtime/js/kernels.js'
import type { KernelSource } from '../../runtime/library.js'
import type { NativeDevice } from '../../runtime/native.js'
import { type ReadyingDevice, readyNamed } from '../../runtime/open.js'
import type { Tuning } from '../../schedule/tuning/tuning.js'
import { type BuildProgress, findCxx } from '../../toolchain/index.js'
import type { Subject } from '../conformance.js'
import { runtimeLayouts } from './layouts.js'
import { generatedText, type PreparedText, prepareText } from './prepare.js'
import { readKernels, readNamed, type SpecKernels } from './specs.js'
import { matching, type Subjects, selected } from './subjects.js'

export interface SetupOptions {
  /** The project: a folder. */
  readonly root: string
  /** Names of ops, derived kernels and graphs; by default all. */
  readonly names?: readonly string[] | undefined
  /** Only groups whose name matches: `rms_norm__f16`, `layer my-plan f32`. */
  readonly filter?: RegExp | undefined
  /** Only graphs under this plan. */
  readonly plan?: string | undefined
  readonly device?: DeviceName | undefined
  /** Machine of the device: a name of ~/.ssh/config, or a command prefix; this one by default. */
  readonly on?: string | undefined
  /** Purpose of a device of another machine, as others who wait for it read it. */
  readonly who?: string | undefined
  /** True if `js` is no default, for a caller that needs compiled kernels. */
  readonly compiled?: boolean | undefined
  /** Storage types; by default all declared ones. */
  readonly dtypes?: readonly DType[] | undefined
  /** Every size that `selftest` tries, which takes minutes, instead of those of some seconds. */
  readonly thorough?: boolean | undefined
  /** A fifth of the usual cases, including each length of a row, for an author who waits for the result of a change. */
  readonly brief?: boolean | undefined
  /** Uses the existing source in `generated/`. */
  readonly generated?: boolean | undefined
  readonly specs?: string | undefined
  /** True to start compilers on all chosen kernels before the rest is loaded, for a caller that runs all of them. */
  readonly ahead?: boolean | undefined
  readonly tuning?: Tuning | undefined
  /** Bodies by name, instead of those of the spec modules. */
  readonly bodies?: Readonly<Record<string, Op>> | undefined
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: BuildProgress) => void) | undefined
  readonly onNotice?: ((text: string) => void) | undefined
}

/** A project on an open device. */
export interface CheckSetup {
  readonly specs: SpecKernels
  readonly chosen: Subjects
  readonly text: PreparedText
  /** The instances of the chosen ops and derived kernels. */
  readonly entries: readonly KernelEntry[]
  readonly bodies: Readonly<Record<string, Op>>
  readonly subject: Subject & { readonly device: NativeDevice & { readonly kind: DeviceKind } }
}

/**
 * Runs an action with the setup, which is released after it.
 * @throws usage `check.selection` for unknown names, with the available ones; errors of the front end and of plans; environment for a
 * missing device, addon or compiler
 */
export async function withSetup<T>(options: SetupOptions, action: (setup: CheckSetup) => Promise<T>): Promise<T> {
  const { signal } = options
  const ended = new AbortController()
  const signals = signal === undefined ? [ended.signal] : [ended.signal, signal]
  // Reading specs is CPU-bound, opening the device mostly waits. Refused specs end the wait.
  const readying = await readyNamed(options.device, { ...options, signal: AbortSignal.any(signals) })
  try {
    return await setUp(options, readying, action)
  } finally {
    ended.abort()
    await readying.end()
  }
}

async function setUp<T>(options: SetupOptions, readying: ReadyingDevice, action: (setup: CheckSetup) => Promise<T>): Promise<T> {
  const { root, signal, onProgress, dtypes, tuning } = options
  // Querying a compiler's version takes a process.
  if (parseDevice(options.device ?? 'simt').kind === 'simt') findCxx().catch(() => undefined)
  const { names = [], plan } = options
  const named = names.length > 0 && plan === undefined ? await readNamed(root, names, options.specs) : undefined
  const specs = named ?? (await readKernels(root, options.specs))
  const chosen = selected(specs, options)
  signal?.throwIfAborted()
  const run = [
    ...chosen.graphs.map(({ planned }) => planned),
    ...chosen.programs.flatMap(({ compiled }) => Object.values(compiled.graphs)),
  ]
  const needed = [...new Set([...chosen.kernels, ...run.flatMap((graph) => kernelsOf(graph, specs))])]
  const text =
    options.generated === true
      ? await generatedText(root, new Set(needed.map(({ name }) => name)))
      : await prepareText(root, specs, needed, { dtypes, tuning, alone: run.length === 0 })
  const wanted = new Set(chosen.kernels.map(({ name }) => name))
  const entries = text.entries.filter(({ op }) => wanted.has(op))
  const kernels = new Map<string, PlannedKernel>([...specs.kernels, ...specs.templates].map((kernel) => [kernel.name, kernel]))
  try {
    const device = await readying.open()
    // With fewer cases, compiling takes a larger share of the time.
    const optimise = options.thorough === true ? '-O1' : options.brief === true ? '-O0' : '-Og'
    const library =
      device.kind === 'js'
        ? loweredSource(root, text.searched, loweredOf(specs))
        : demandedKernels(device, text.searched, { root, signal, onProgress, optimise })
    const keys = entries.map(({ key }) => key).filter((key) => matching(options.filter, key))
    const compiling = compileAhead(library, options.ahead === true ? batchesOf(keys) : [])
    try {
      const bodies = options.bodies ?? (await bodiesOf(options))
      signal?.throwIfAborted()
      const subject = { device, library, layouts: runtimeLayouts(specs.layouts), ops: bodies, kernels }
      return await action({ specs, chosen, text, entries, bodies, subject })
    } finally {
      await compiling.end()
    }
  } finally {
    await text.remove()
  }
}

/** All IR of a project by kernel. A graph may run ops of the library, which are no kernels of the project. */
const loweredOf = ({ ops, kernels, templates }: SpecKernels): LoweredByName =>
  new Map<string, PlannedKernel>([
    ...[...ops.values()].map((kernel) => [kernelName(kernel.name), kernel] as const),
    ...[...kernels, ...templates].map((kernel) => [kernel.name, kernel] as const),
  ])

/** Starts compilers; `end` stops those that still run. Compile errors are reported where the kernel is requested. */
function compileAhead(library: KernelSource, batches: readonly (readonly string[])[]): { end: () => Promise<unknown> } {
  const ended = new AbortController()
  const compiling = Promise.allSettled(batches.map((batch) => library.ensure(batch, { signal: ended.signal })))
  return {
    end: () => {
      ended.abort()
      return compiling
    },
  }
}

/** Most libraries that kernels are linked into: one is checked while the next is compiled, and each takes memory in the process. */
const mostLibraries = 16

/** Splits keys by library. */
function batchesOf(keys: readonly string[]): readonly (readonly string[])[] {
  const size = Math.ceil(keys.length / mostLibraries)
  return Array.from({ length: Math.min(keys.length, mostLibraries) }, (_, at) => keys.slice(at * size, (at + 1) * size)).filter(
    (batch) => batch.length > 0,
  )
}

async function bodiesOf({ root, specs, onNotice }: SetupOptions): Promise<Readonly<Record<string, Op>>> {
  const { readBodies } = await import('../../frontend/searched.js')
  const { ops, failed } = await readBodies(root, specs)
  for (const [file, reason] of Object.entries(failed))
    onNotice?.(`${file} cannot be run, so its ops are checked against their IR: ${reason}`)
  return ops
}

/** Kernels of the project that a graph runs. */
function kernelsOf(graph: Graph, { kernels, templates }: SpecKernels): PlannedKernel[] {
  const names = new Set(nodesAtAnyRows(graph).flatMap((node) => (node.kind === 'op' ? [kernelName(node.op)] : [])))
  return [...kernels, ...templates].filter(({ name }) => names.has(name))
}
