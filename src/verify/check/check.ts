/**
 * Holds a project's own ops, what its plans derive, and its graphs and programs under each of their plans against their bodies on a device: what
 * `heddle check` and `check` of heddle/testing run. Specs are read, their text is generated and compiled as far as it is checked, all in
 * one process; `generated/` is left alone.
 */
import { findingError } from '../../errors.js'
import type { PlannedKernel } from '../../fuse/apply.js'
import type { DType } from '../../ir/dtype.js'
import type { Graph } from '../../ir/graph.js'
import { kernelName } from '../../ir/op_name.js'
import type { Op } from '../../lang/types.js'
import { demandedKernels } from '../../runtime/demand.js'
import type { DeviceKind } from '../../runtime/device.js'
import { openDevice } from '../../runtime/device.js'
import type { KernelSource } from '../../runtime/library.js'
import type { NativeDevice } from '../../runtime/native.js'
import { defaultDevice, prepareNative } from '../../runtime/open.js'
import type { Tuning } from '../../schedule/tuning.js'
import type { BuildProgress } from '../../toolchain/index.js'
import { casesOf, type Drawn } from '../cases.js'
import { type CheckResult, runCase, type Subject } from '../conformance.js'
import { checkGraph, graphTypes } from './graphs.js'
import { runtimeLayouts } from './layouts.js'
import { generatedText, type PreparedText, prepareText } from './prepare.js'
import { checkProgram } from './programs.js'
import { readKernels, readNamed, type SpecKernels } from './specs.js'
import { matching, selected, subjectsOf } from './subjects.js'

export interface CheckOptions {
  /** The project: a folder. */
  readonly root: string
  /** Names of ops, derived kernels and graphs; all of them without any. */
  readonly names?: readonly string[] | undefined
  /** Only what has a name that matches: `rms_norm__f16`, `layer my-plan f32`. */
  readonly filter?: RegExp | undefined
  /** Graphs under this plan only. */
  readonly plan?: string | undefined
  readonly device?: DeviceKind | undefined
  /** Storage types; all that are declared without any. */
  readonly dtypes?: readonly DType[] | undefined
  /** Every size that `selftest` tries, which takes minutes, instead of those of some seconds. */
  readonly thorough?: boolean | undefined
  /** A fifth of the usual cases, each length of a row among them, for whoever has changed something and waits. */
  readonly brief?: boolean | undefined
  /** The text that lies in `generated/`, as it is there. */
  readonly generated?: boolean | undefined
  readonly specs?: string | undefined
  readonly tuning?: Tuning | undefined
  /** Bodies by name, in the place of those of the spec modules. */
  readonly bodies?: Readonly<Record<string, Op>> | undefined
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: BuildProgress) => void) | undefined
  readonly onNotice?: ((text: string) => void) | undefined
  readonly onGroup?: ((group: CheckGroup) => void) | undefined
}

/** What was found of one kernel, or of one graph or program under a plan, in a storage type. */
export interface CheckGroup {
  readonly kind: 'op' | 'derived' | 'graph' | 'program'
  /** `rms_norm__f16`, `layer my-plan f32`. */
  readonly name: string
  /** Of an op: its body run by Node; `ir` where its module cannot be run. Else what its members' bodies compose to. */
  readonly against: 'body' | 'ir' | 'nodes'
  readonly passed: number
  readonly failures: readonly CheckResult[]
  readonly seconds: number
}

export interface CheckReport {
  readonly device: { readonly kind: DeviceKind; readonly name: string }
  readonly passed: number
  readonly failed: number
  readonly groups: readonly CheckGroup[]
}

/** Elements of a buffer: so many that every length is tried, and few enough for the slower interpreter. All that selftest tries. */
const [usualElements, thoroughElements] = [12_000, 330_000]

/**
 * @throws finding `check.selection` where nothing is selected, with what there is; errors of the front end and of plans; environment for a
 * missing device, addon or compiler
 */
export async function checkProject(options: CheckOptions): Promise<CheckReport> {
  const { root, signal } = options
  // Reading takes the processor, opening the device mostly waits.
  const native = prepareNative(options.device, { root, signal, onNotice: options.onNotice })
  native.catch(() => undefined)
  const { names = [], plan } = options
  const named = names.length > 0 && plan === undefined ? await readNamed(root, names, options.specs) : undefined
  const specs = named ?? (await readKernels(root, options.specs))
  const chosen = selected(specs, options)
  const bodies = options.bodies ?? (await bodiesOf(options))
  signal?.throwIfAborted()
  const run = [
    ...chosen.graphs.map(({ planned }) => planned),
    ...chosen.programs.flatMap(({ compiled }) => Object.values(compiled.graphs)),
  ]
  const needed = [...new Set([...chosen.kernels, ...run.flatMap((graph) => kernelsOf(graph, specs))])]
  const text =
    options.generated === true
      ? await generatedText(root, new Set(needed.map(({ name }) => name)))
      : await prepareText(root, specs, needed, options.dtypes, options.tuning)
  try {
    await native
    const device = openDevice(options.device ?? defaultDevice())
    try {
      return await runAll(device, text, specs, chosen, bodies, options)
    } finally {
      device.close()
    }
  } finally {
    await text.remove()
  }
}

async function bodiesOf({ root, specs, onNotice }: CheckOptions): Promise<Readonly<Record<string, Op>>> {
  const { readBodies } = await import('../../frontend/searched.js')
  const { ops, failed } = await readBodies(root, specs)
  for (const [file, reason] of Object.entries(failed))
    onNotice?.(`${file} cannot be run, so its ops are held against what was read of them: ${reason}`)
  return ops
}

/** Kernels of the project that a graph runs. */
function kernelsOf({ nodes }: Graph, { kernels, templates }: SpecKernels): PlannedKernel[] {
  const names = new Set(nodes.flatMap((node) => (node.kind === 'op' ? [kernelName(node.op)] : [])))
  return [...kernels, ...templates].filter(({ name }) => names.has(name))
}

async function runAll(
  device: NativeDevice & { readonly kind: DeviceKind },
  text: PreparedText,
  specs: SpecKernels,
  chosen: ReturnType<typeof selected>,
  bodies: Readonly<Record<string, Op>>,
  options: CheckOptions,
): Promise<CheckReport> {
  const { root, signal, onProgress } = options
  // The fewer cases there are, the more of the time is the compiler's.
  const optimise = options.thorough === true ? '-O1' : options.brief === true ? '-O0' : '-Og'
  const library = demandedKernels(device, text.searched, { root, signal, onProgress, optimise })
  const layouts = runtimeLayouts(specs.layouts)
  const kernels = new Map<string, PlannedKernel>([...specs.kernels, ...specs.templates].map((kernel) => [kernel.name, kernel]))
  const subject: Subject = { device, library, layouts, ops: bodies, kernels }
  const names = new Set(chosen.kernels.map(({ name }) => name))
  const entries = text.entries.filter(({ op, key }) => names.has(op) && matching(options.filter, key))
  const groups: CheckGroup[] = []
  const add = (group: CheckGroup): void => {
    groups.push(group)
    options.onGroup?.(group)
  }
  // All at once, so that compilers run side by side; what does not compile is told where it is checked.
  await library.ensure(entries.map(({ key }) => key)).catch(() => signal?.throwIfAborted())
  for (const entry of entries) {
    const limit = options.thorough === true ? thoroughElements : usualElements
    const drawn: Drawn = options.brief === true ? 'by turns' : 'each'
    const derived = specs.derived.has(entry.op)
    const kind = derived ? 'derived' : 'op'
    const against = derived ? 'nodes' : Object.hasOwn(bodies, entry.op) ? 'body' : 'ir'
    add(await timed(kind, entry.key, against, () => checkKernel(subject, library, entry, { limit, drawn, signal }), signal))
  }
  const stage = { device, library, manifest: text.searched.manifest, layouts, ops: specs.ops }
  for (const graph of chosen.graphs) {
    for (const dtype of graphTypes(graph, specs.ops, options.dtypes)) {
      const name = `${graph.name} ${graph.plan} ${dtype}`
      if (matching(options.filter, name)) add(await timed('graph', name, 'nodes', () => checkGraph(stage, graph, dtype), signal))
    }
  }
  for (const program of chosen.programs) {
    const { name: of, plan, inlined, dtypes } = program
    for (const dtype of graphTypes({ planned: inlined, prepared: inlined }, specs.ops, options.dtypes)) {
      const name = `${of} ${plan} ${dtype}`
      const isMade = dtypes?.includes(dtype) ?? true
      if (isMade && matching(options.filter, name)) {
        add(await timed('program', name, 'nodes', () => checkProgram(stage, program, dtype), signal))
      }
    }
  }
  const failed = groups.reduce((sum, { failures }) => sum + failures.length, 0)
  const passed = groups.reduce((sum, group) => sum + group.passed, 0)
  if (groups.length === 0) throw nothingSelected(specs, options)
  return { device: { kind: device.kind, name: device.info().name }, passed, failed, groups }
}

interface Trying {
  /** Elements of a buffer. */
  readonly limit: number
  readonly drawn: Drawn
  readonly signal: AbortSignal | undefined
}

async function checkKernel(
  subject: Subject,
  library: KernelSource,
  entry: PreparedText['entries'][number],
  { limit, drawn, signal }: Trying,
): Promise<CheckResult[]> {
  await library.ensure([entry.key], { signal })
  const results: CheckResult[] = []
  for (const test of casesOf(entry, limit, drawn)) {
    signal?.throwIfAborted()
    results.push(await runCase(subject, test))
  }
  return results
}

/** Runs a group; one that cannot be run at all has failed, and the others still tell what works. */
async function timed(
  kind: CheckGroup['kind'],
  name: string,
  against: CheckGroup['against'],
  check: () => Promise<CheckResult[]>,
  signal: AbortSignal | undefined,
): Promise<CheckGroup> {
  const start = performance.now()
  const results = await check().catch((error: unknown): CheckResult[] => {
    signal?.throwIfAborted()
    return [{ name, passed: false, detail: error instanceof Error ? error.message : String(error) }]
  })
  const failures = results.filter(({ passed }) => !passed)
  return { kind, name, against, passed: results.length - failures.length, failures, seconds: (performance.now() - start) / 1000 }
}

const nothingSelected = (specs: SpecKernels, { names, filter, plan }: CheckOptions) => {
  const asked = [
    ...(names ?? []),
    ...(filter === undefined ? [] : [String(filter)]),
    ...(plan === undefined ? [] : [`plan ${plan}`]),
  ]
  const { kernels, graphs, programs } = subjectsOf(specs)
  const there = [...new Set([...kernels, ...graphs, ...programs].map(({ name }) => name))]
  return findingError('check.selection', `nothing is selected${asked.length === 0 ? '' : ` by ${asked.join(', ')}`}`, {
    hint: there.length === 0 ? 'the project declares no op, graph or program' : `there are ${there.join(', ')}`,
  })
}
