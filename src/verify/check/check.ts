/**
 * Checks a project's ops, the kernels its plans derive, and its graphs and programs under each of their plans against their bodies on a device.
 * `heddle check` and `check` of heddle/testing run this. Specs are read, and the source of the checked kernels is generated and compiled, all in
 * one process; `generated/` is left alone.
 */

import type { KernelEntry } from '../../emit/manifest/manifest.js'
import { findingError, HeddleError, usageError } from '../../errors.js'
import { isTemplate } from '../../ir/template.js'
import type { DeviceKind } from '../../runtime/device.js'
import type { KernelSource } from '../../runtime/library.js'
import { isOfLink } from '../../runtime/remote/failures.js'
import { casesOf, checkedElements, type Drawn, whyNone } from '../cases.js'
import { type CheckResult, runCases } from '../conformance.js'
import { loopFailure } from '../loops.js'
import { compileForGpu, type GpuBuild, type GpuSources } from './gpu_sources.js'
import { checkGraph, type GraphStage, graphTypes, unmultiplied, wholeTypes } from './graphs.js'
import { checkProgram } from './programs.js'
import { type CheckSetup, type SetupOptions, withSetup } from './setup.js'
import type { SpecKernels } from './specs.js'
import { matching, subjectsOf } from './subjects.js'
import { opsOf, whyUntried } from './untried.js'

export interface CheckOptions extends SetupOptions {
  readonly onGroup?: ((group: CheckGroup) => void) | undefined
  /** Also compiles the sources of kernels checked on the CPU device with nvcc. */
  readonly gpuBuild?: GpuBuild | undefined
}

/** Results of one kernel, or of one graph or program under a plan, in a storage type. */
export interface CheckGroup {
  readonly kind: 'op' | 'derived' | 'graph' | 'program'
  /** `rms_norm__f16`, `layer my-plan f32`. */
  readonly name: string
  /** The op or derived kernel that it is an instance of; absent for graphs and programs. */
  readonly op?: string
  /** The reference. For an op, its body run by Node, or `ir` if its module cannot be run; else the composition of its members' bodies. */
  readonly against: 'body' | 'ir' | 'nodes'
  /** Number of sizes that were run and compared; 0 only if the group was not run. */
  readonly tried: number
  readonly passed: number
  readonly failures: readonly CheckResult[]
  /** Elements not judged of sizes that passed, with the reason; absent if all were judged. */
  readonly notes?: readonly Pick<CheckResult, 'name' | 'note'>[]
  /** Set if nothing was run: the only failure states the reason and the fix. */
  readonly unrun?: true
  /** Set if a missing fact prevented all tests: the reason, and the fact to state. The group has neither passed nor failed. */
  readonly untried?: string
  readonly seconds: number
}

export interface CheckReport {
  readonly device: { readonly kind: DeviceKind; readonly name: string }
  readonly passed: number
  readonly failed: number
  /** Number of groups that could not be tried: they have neither passed nor failed. */
  readonly untried: number
  readonly groups: readonly CheckGroup[]
  /** Results of nvcc on the sources; absent if it was not requested, or is not installed. Each finding counts as failed. */
  readonly gpu?: GpuSources
  /** Graphs and programs that cannot be checked as a whole, and the reason; their kernels were checked. */
  readonly apart: readonly { readonly name: string; readonly reason: string }[]
}

/**
 * @throws usage `check.selection` if nothing is selected, with the available names; errors of the front end and of plans; environment for a
 * missing device, addon or compiler
 */
export const checkProject = (options: CheckOptions): Promise<CheckReport> =>
  withSetup({ ...options, ahead: true }, async (setup) => withGpuSources(await runAll(setup, options), setup, options))

async function withGpuSources(
  report: CheckReport,
  { entries, text }: CheckSetup,
  { gpuBuild, filter, signal }: CheckOptions,
): Promise<CheckReport> {
  if (gpuBuild === undefined || report.device.kind !== 'simt') return report
  const checked = entries.filter(({ key }) => matching(filter, key))
  const gpu = await compileForGpu(checked, text, gpuBuild, signal)
  return gpu === undefined ? report : { ...report, failed: report.failed + gpu.findings.length, gpu }
}

/** A check that is running. */
interface Run {
  readonly setup: CheckSetup
  readonly options: CheckOptions
  /** Records a group, and reports it. */
  readonly add: (group: CheckGroup) => void
}

/** Checks the instances of ops and derived kernels, as their compilers finish. */
async function checkKernels({ setup, options, add }: Run, entries: readonly KernelEntry[]): Promise<void> {
  const { specs, chosen, bodies, subject } = setup
  const { signal } = options
  const ops = [...specs.ops.values()]
  // Instances of an op have the same loops, but for widths.
  const first = new Map(entries.toReversed().map((entry) => [entry.op, entry]))
  for await (const { entry, failure } of asReady(compared(setup, entries), subject.library)) {
    signal?.throwIfAborted()
    const limit = checkedElements[options.thorough === true ? 'thorough' : 'usual']
    const drawn: Drawn = options.brief === true ? 'by turns' : 'each'
    const derived = specs.derived.has(entry.op)
    const kind = derived ? 'derived' : 'op'
    const against = derived ? 'nodes' : Object.hasOwn(bodies, entry.op) ? 'body' : 'ir'
    if (isMachines(failure?.reason)) throw failure?.reason
    const run = async (): Promise<CheckResult[]> => {
      if (failure !== undefined) throw failure.reason
      if (subject.device.kind === 'js' && against !== 'body') throw findingError('check.untried', onlyIr[against])
      const cases = casesOf(entry, limit, drawn)
      if (cases.length === 0) throw findingError('check.untried', whyNone(entry), { hint: untriedHint })
      const results = await runCases(subject, cases, signal)
      const kernel = first.get(entry.op) === entry ? subject.kernels?.get(entry.op) : undefined
      if (kernel === undefined || isTemplate(kernel)) return results
      const wrong = await loopFailure(kernel, entry, specs.schedules[kernel.name])
      return wrong === undefined ? results : [...results, wrong]
    }
    const own = specs.ops.get(entry.op)
    const parts = chosen.graphs.filter(({ planned }) => planned.nodes.some((node) => node.kind === 'op' && node.op === entry.op))
    const members = own === undefined ? parts.flatMap(({ prepared }) => opsOf(prepared, specs.ops)) : [own]
    const explain = (error: unknown): string | undefined => whyUntried(error, own, members.length === 0 ? ops : members)
    add({ ...(await timed(kind, entry.key, against, run, signal, explain)), op: entry.op })
  }
}

/** The device `js` runs the IR of a kernel, so that only something else can be compared with it. */
const onlyIr: Readonly<Record<'ir' | 'nodes', string>> = {
  ir: 'the device js compares IR with bodies, and the module of this op cannot be run',
  nodes: 'the device js compares a derived kernel with its nodes in a whole graph: name the graph',
}

/** The kernels that a check runs one by one. Derived ones on `js` are a part of the graphs that it runs. */
function compared({ subject, chosen, specs }: CheckSetup, entries: readonly KernelEntry[]): readonly KernelEntry[] {
  const runsGraphs = chosen.graphs.length + chosen.programs.length > 0
  return subject.device.kind === 'js' && runsGraphs ? entries.filter(({ op }) => !specs.derived.has(op)) : entries
}

const stageOf = ({ specs, text, subject: { device, library, layouts } }: CheckSetup): GraphStage => ({
  device,
  library,
  manifest: text.searched.manifest,
  layouts,
  ops: specs.ops,
})

type Left = { readonly name: string; readonly reason: string }

/** Checks graphs under their plans. @returns storage types that are left out, with the reasons */
async function checkGraphs({ setup, options, add }: Run): Promise<readonly Left[]> {
  const { specs, chosen } = setup
  const stage = stageOf(setup)
  const partly: Left[] = []
  for (const graph of chosen.graphs) {
    const { whole: types, left } = wholeTypes(graph, specs.ops, options.dtypes)
    const explain = (error: unknown): string | undefined => whyUntried(error, undefined, opsOf(graph.prepared, specs.ops))
    partly.push(...left.map(({ type, reason }) => ({ name: `${graph.name} ${graph.plan} ${type}`, reason })))
    for (const dtype of types) {
      const name = `${graph.name} ${graph.plan} ${dtype}`
      if (matching(options.filter, name))
        add(await timed('graph', name, 'nodes', () => checkGraph(stage, graph, dtype), options.signal, explain))
    }
  }
  return partly
}

/** Checks programs under their plans. */
async function checkPrograms({ setup, options, add }: Run): Promise<void> {
  const { specs, chosen } = setup
  const stage = stageOf(setup)
  const ops = [...specs.ops.values()]
  const explain = (error: unknown): string | undefined => whyUntried(error, undefined, ops)
  for (const program of chosen.programs) {
    const { name: of, plan, inlined, compiled, dtypes } = program
    for (const dtype of graphTypes({ planned: inlined, prepared: inlined }, specs.ops, options.dtypes)) {
      const name = `${of} ${plan} ${dtype}`
      const isRun = Object.values(compiled.graphs).every((graph) => unmultiplied(graph, dtype) === undefined)
      const isMade = isRun && (dtypes?.includes(dtype) ?? true)
      if (isMade && matching(options.filter, name)) {
        add(await timed('program', name, 'nodes', () => checkProgram(stage, program, dtype), options.signal, explain))
      }
    }
  }
}

async function runAll(setup: CheckSetup, options: CheckOptions): Promise<CheckReport> {
  const { device } = setup.subject
  const entries = setup.entries.filter(({ key }) => matching(options.filter, key))
  const groups: CheckGroup[] = []
  const add = (group: CheckGroup): void => {
    groups.push(group)
    options.onGroup?.(group)
  }
  const run: Run = { setup, options, add }
  await checkKernels(run, entries)
  // Reports of one project have the same order.
  const places = new Map(entries.map(({ key }, at) => [key, at]))
  groups.sort((a, b) => (places.get(a.name) ?? 0) - (places.get(b.name) ?? 0))
  const partly = await checkGraphs(run)
  await checkPrograms(run)
  if (groups.length === 0) throw nothingSelected(setup.specs, options)
  const apart = [...setup.chosen.apart.map(({ name, plan, reason }) => ({ name: `${name} ${plan}`, reason })), ...partly]
  return {
    device: { kind: device.kind, name: device.info().name },
    passed: groups.reduce((sum, group) => sum + group.passed, 0),
    failed: groups.reduce((sum, { failures }) => sum + failures.length, 0),
    untried: groups.filter((group) => group.untried !== undefined).length,
    groups,
    apart: apart.filter(({ name }) => matching(options.filter, name)),
  }
}

/** True if an error is not the fault of a kernel: there is no compiler, or no space for its output. */
const isMachines = (reason: unknown): boolean => reason instanceof HeddleError && /^(cache|toolchain)\./.test(reason.code)

/** A kernel that can be launched, or the reason why not. */
interface Ready {
  readonly entry: KernelEntry
  readonly failure: { readonly reason: unknown } | undefined
}

/** Yields kernels as their compilers finish. */
async function* asReady(entries: readonly KernelEntry[], library: KernelSource): AsyncGenerator<Ready> {
  const settled = (entry: KernelEntry): Promise<Ready> =>
    library.ensure([entry.key]).then(
      () => ({ entry, failure: undefined }),
      (reason: unknown) => ({ entry, failure: { reason } }),
    )
  const waiting = new Map(entries.map((entry) => [entry.key, settled(entry)]))
  while (waiting.size > 0) {
    const ready = await Promise.race(waiting.values())
    waiting.delete(ready.entry.key)
    yield ready
  }
}

const detailOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  const hint = error instanceof HeddleError ? error.hint : undefined
  return hint === undefined ? error.message : `${error.message}; ${hint}`
}

const untriedHint = 'give the op facts that allow smaller extents, or check it at its sizes with device.call'

/** Runs a group. A group that cannot be run at all has failed, unless it lacks a fact for its tests; the other groups still run. */
async function timed(
  kind: CheckGroup['kind'],
  name: string,
  against: CheckGroup['against'],
  check: () => Promise<CheckResult[]>,
  signal: AbortSignal | undefined,
  explain: (error: unknown) => string | undefined,
): Promise<CheckGroup> {
  const start = performance.now()
  let reason: unknown = findingError('check.untried', 'nothing was compared', { hint: untriedHint })
  const results = await check().catch((error: unknown): CheckResult[] => {
    signal?.throwIfAborted()
    if (isOfLink(error)) throw error
    reason = error
    return []
  })
  const group = { kind, name, against, seconds: (performance.now() - start) / 1000 }
  const tried = results.length
  const untried = tried === 0 ? explain(reason) : undefined
  if (untried !== undefined) return { ...group, tried, passed: 0, failures: [], untried }
  if (tried === 0)
    return { ...group, tried, passed: 0, failures: [{ name, passed: false, detail: detailOf(reason) }], unrun: true }
  const failures = results.filter(({ passed }) => !passed)
  const notes = results.flatMap(({ name, note }) => (note === undefined ? [] : [{ name, note }]))
  return { ...group, tried, passed: tried - failures.length, failures, ...(notes.length > 0 ? { notes } : {}) }
}

const nothingSelected = (specs: SpecKernels, { names, filter, plan }: CheckOptions) => {
  const selectors = [
    ...(names ?? []),
    ...(filter === undefined ? [] : [String(filter)]),
    ...(plan === undefined ? [] : [`plan ${plan}`]),
  ]
  const { kernels, graphs, programs } = subjectsOf(specs)
  const there = [...new Set([...kernels, ...graphs, ...programs].map(({ name }) => name))]
  return usageError('check.selection', `nothing is selected${selectors.length === 0 ? '' : ` by ${selectors.join(', ')}`}`, {
    hint: there.length === 0 ? 'the project declares no op, graph or program' : `there are ${there.join(', ')}`,
  })
}
