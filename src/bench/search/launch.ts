/**
 * One group of a search on a device: its nodes as a graph of their own, with the kernel derived for them; its check against its nodes, and its
 * time. Weights and inputs of the whole graph are cold, as they are in a model: replays rotate over copies of them. Results of other nodes are
 * where the kernel before has left them, and the group waits for it before it reads them.
 */
import { applyPlan } from '../../fuse/apply.js'
import { checkDerived } from '../../fuse/check/derived.js'
import { graphFacts } from '../../fuse/facts.js'
import type { LayoutsByName } from '../../fuse/graph/edit.js'
import type { PlannedKernel } from '../../fuse/planned_kernel.js'
import type { Graph } from '../../ir/graph.js'
import type { Kernel } from '../../ir/kernel.js'
import { kernelName } from '../../ir/op_name.js'
import { linkGraph } from '../../search/link.js'
import { type Part, partOf } from '../../search/part.js'
import { nameOfContent, type Subject } from '../../search/problem.js'
import type { Times } from '../../search/record.js'
import { checkGraph } from '../../verify/check/graphs.js'
import { cacheOf, rotationOf } from '../rotation.js'
import { summarise } from '../statistics.js'
import { targetProgram } from '../target/graph_steps.js'
import type { TargetBench } from '../target/measure.js'
import { readyChain } from '../target/ready_chain.js'

/** A group that can be built. */
export interface Built {
  readonly subject: Subject
  readonly part: Part
  /** The graph that launches it, by kernel names. */
  readonly planned: Graph
  /** The launched kernel; undefined for a matmul of the library. */
  readonly kernel: PlannedKernel | undefined
  /** @throws usage `plan.meaning` for a kernel that computes another value than its nodes */
  readonly verify: () => void
}

/** Derives a group in its own graph. @throws usage `plan.*` */
export function builtOf(subject: Subject, ops: ReadonlyMap<string, Kernel>, layouts: LayoutsByName): Built {
  const { group, form, launch } = subject
  const { candidates } = form.space
  const part = partOf(candidates.graph, group.group.names)
  const isAlone = group.group.launch.graph === candidates.graph
  const name = nameOfContent(launch.content)
  const groups = isAlone ? [] : [{ kernel: name, occurrences: [group.group.names] }]
  const library = group.form === 'library' && !isAlone ? [name] : []
  const planned = applyPlan(part.graph, { name: 'search', graph: part.graph.name, groups, library }, ops, layouts)
  const verify = (): void => planned.groups.forEach((derived) => void checkDerived(derived, ops))
  const derived = planned.kernels.get(name) ?? planned.templates.get(name)
  const { kernel: alone } = group.group
  const kernel = isAlone && alone !== undefined ? { ...alone, name: kernelName(alone.name) } : derived
  return { subject, part, planned: linkGraph(planned.graph), kernel, verify }
}

export type LaunchBench = Omit<TargetBench, 'ceilings' | 'onStage'>

/** Copies that are rotated at least, so that a replay takes long enough to be timed. */
const fewestPasses = 8

/** Milliseconds of a group in replays of a captured chain of its launches. @throws as `openSession` and `buildProgram` */
export async function timeLaunch(bench: LaunchBench, { planned, part, subject }: Built): Promise<Times> {
  const { device, manifest, layouts, dtype, repeats } = bench
  const dims = presentIn(planned, subject.dims)
  const target = targetProgram(planned, { dims, dtype }, manifest, layouts)
  const isWarm = (name: string): boolean => part.inner.has(name.replace(/^input /, ''))
  const cold = Object.entries(target.tensors).reduce((sum, [name, { data }]) => sum + (isWarm(name) ? 0 : data.byteLength), 0)
  const cache = cacheOf(device.info())
  const passes = cache === undefined ? 1 : Math.max(fewestPasses, cold === 0 ? 0 : rotationOf(cold, cache).passes)
  const { program, release } = await readyChain(bench, { target, passes, dims, isShared: isWarm, isChanging: isWarm })
  try {
    const times = await program.time(repeats, warmup)
    const { median, low, high, samples } = summarise(Array.from(times, (milliseconds) => milliseconds / passes / 1000))
    return { median, low, high, samples }
  } finally {
    release()
  }
}

const warmup = 3

/** Dimensions that a graph has. */
export function presentIn({ values, packing }: Graph, dims: Subject['dims']): Subject['dims'] {
  const rows = packing === undefined ? [] : [packing.batch, packing.seq, packing.tokens]
  const present = new Set([...values.flatMap(({ shape }) => shape), ...rows].flatMap((extent) => extent.dims))
  return Object.fromEntries(Object.entries(dims).filter(([name]) => present.has(name)))
}

/** Reason why a group computes something else on the device than its nodes; undefined if it does not, at several small sizes. */
export async function whyWrong(
  bench: LaunchBench,
  { part, planned, subject }: Built,
  ops: ReadonlyMap<string, Kernel>,
): Promise<string | undefined> {
  const { device, library, manifest, layouts, dtype } = bench
  const { names } = subject.group.group
  const checked = {
    name: names.join(),
    plan: 'search',
    planned,
    prepared: part.graph,
    facts: graphFacts(part.graph, ops),
    groups: [names],
  }
  const results = await checkGraph({ device, library, manifest, layouts, ops }, checked, dtype)
  return results.find(({ passed }) => !passed)?.detail
}
