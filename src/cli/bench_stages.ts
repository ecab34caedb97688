/** Sources of a suite's times: an open device with its kernels, or the cost model of a device that need not be here. */
import { costOf } from '../bench/facts/cost.js'
import { deviceCeilings } from '../bench/facts/facts.js'
import { summarise } from '../bench/statistics.js'
import type { SuiteCell } from '../bench/suite/result.js'
import type { SuiteStage } from '../bench/suite/run.js'
import { floorNotes } from '../bench/table.js'
import { deviceName } from '../bench/target/baseline.js'
import { completed, measure } from '../bench/target/measure.js'
import type { Subject } from '../bench/target/subject.js'
import { type CostDevice, costDevice } from '../cost/device.js'
import type { Manifest } from '../emit/manifest/manifest.js'
import { usageError } from '../errors.js'
import type { SuiteDecl, SuiteType } from '../lang/suite.js'
import type { OpenKernels } from '../runtime/open.js'
import type { PlanReport } from '../search/explain.js'
import { findSubject, usualGpu } from './bench_target.js'
import type { CliContext } from './context.js'
import { bare, explainer } from './explained.js'
import type { SearchPath } from './search_path.js'

type Dims = Readonly<Record<string, number>>

/** Prices of the plans of a subject; undefined for a plan without a price. */
type Priced = (plan: string, dims: Dims, dtype: SuiteType, device: CostDevice) => PlanReport | undefined

/** Prices by the cost model; undefined if it does not cover the subject, as programs. @throws usage `plan.*`, `frontend.*` */
async function pricer(path: SearchPath, subject: Subject): Promise<Priced | undefined> {
  const [form] = subject.forms
  // A kernel is a graph of one node.
  const ofKernel = subject.kind === 'kernel' && form !== undefined && 'graph' in form ? form.graph : undefined
  const graph = subject.kind === 'graph' ? path.graphs[subject.name]?.graph : ofKernel
  const read = graph === undefined ? undefined : await path.read(graph)
  if (graph === undefined || read === undefined || (ofKernel !== undefined && !read.ops.has(ofKernel.name))) return undefined
  const names = subject.forms.map(({ plan }) => plan)
  const explain = explainer(path, graph, read, names)
  return (plan, dims, dtype, device) => {
    const isDeclared =
      plan === bare || ofKernel !== undefined || path.plans.some((each) => each.name === plan && each.graph === graph.name)
    return isDeclared ? explain(plan, { device, dims, dtype, isCold: ofKernel !== undefined }) : undefined
  }
}

interface Typed {
  readonly subject: Subject
  readonly priced: Priced | undefined
}

/** The subject in every type of the suite: a kernel is another instance in each. @throws usage `bench.*`, `plan.unknown` */
async function subjectsOf(
  suite: SuiteDecl,
  manifest: Manifest,
  path: SearchPath,
): Promise<(dtype: SuiteType) => Typed & { readonly nameOf: (plan: string) => string }> {
  const found = new Map<SuiteType, Typed>()
  for (const dtype of suite.dtypes) {
    const subject = await findSubject(suite.subject, manifest, { plans: suite.plans, dtype, config: undefined }, path)
    found.set(dtype, { subject, priced: await pricer(path, subject) })
  }
  return (dtype) => {
    const typed = found.get(dtype)
    if (typed === undefined) throw new Error(`internal: ${dtype} is no type of ${suite.name}`)
    // The key of a kernel differs by type, and its op does not.
    return { ...typed, nameOf: (plan) => (typed.subject.kind === 'kernel' ? suite.subject : plan) }
  }
}

/** Repeats of the `js` device are slow, and nothing of it is a limit. */
const probeOf = (kind: string) => (kind === 'js' ? 'never' : 'kept')

/** Times on an open device. @throws usage `bench.*`, `plan.unknown`, `graph.dim` */
export async function deviceStage(
  suite: SuiteDecl,
  opened: OpenKernels,
  path: SearchPath,
  { signal, log }: CliContext,
): Promise<SuiteStage> {
  const { device, manifest } = opened
  const info = device.info()
  const onStage = (stage: string): void => log(`${stage}\n`)
  const ceilings = await deviceCeilings(device, { onStage, probe: probeOf(device.kind) })
  const [subjectOf, layouts] = [await subjectsOf(suite, manifest, path), await path.layouts()]
  const isHost = device.kind !== 'cuda'
  const predictedOn = isHost ? usualGpu : info.name
  return {
    clock: device.kind,
    device: deviceName(info),
    predictedOn,
    notes: [...new Set(suite.dtypes.flatMap((dtype) => floorNotes(ceilings, info, dtype)))],
    completed: (dtype, dims) => completed(subjectOf(dtype).subject, dims),
    async time(dtype, dims) {
      const { subject, priced, nameOf } = subjectOf(dtype)
      const bench = { ...opened, layouts, ceilings, dtype, repeats: suite.repeats, signal }
      const cost = isHost ? costDevice(usualGpu) : costOf(info, ceilings, dtype)
      const all = completed(subject, dims)
      const moved = subject.forms.flatMap(({ plan }) =>
        cost === undefined ? [] : (priced?.(plan, all, dtype, cost)?.totals.bytes ?? []),
      )
      return (await measure(bench, subject, dims, moved)).map((times): SuiteCell => {
        const price = cost === undefined ? undefined : priced?.(times.plan, times.dims, dtype, cost)?.totals
        const further = price === undefined ? 0 : price.launches - price.kernels - price.matmuls
        return {
          plan: nameOf(times.plan),
          peer: false,
          dtype,
          dims,
          samples: times.samples,
          milliseconds: times.milliseconds,
          floor: times.floor?.milliseconds,
          predicted: price === undefined ? undefined : price.microseconds / 1000,
          launches: times.launches + further,
          profile: times.profile,
        }
      })
    },
  }
}

/** Prices instead of times. @throws usage `suite.price` for a subject without a price */
export async function modelStage(suite: SuiteDecl, name: string, manifest: Manifest, path: SearchPath): Promise<SuiteStage> {
  const device = costDevice(name)
  const subjectOf = await subjectsOf(suite, manifest, path)
  const notPriced = (what: string) =>
    usageError('suite.price', `the cost model has no price of ${what}`, { hint: 'time it on a device: leave --predicted out' })
  return {
    clock: `model ${name}`,
    device: name,
    notes: [],
    completed: (dtype, dims) => completed(subjectOf(dtype).subject, dims),
    async time(dtype, dims) {
      const { subject, priced, nameOf } = subjectOf(dtype)
      if (priced === undefined) throw notPriced(`${subject.kind} ${subject.name}`)
      return subject.forms.map(({ plan }): SuiteCell => {
        const report = priced(plan, dims, dtype, device)
        if (report === undefined) throw notPriced(`plan ${plan}`)
        const samples = [report.totals.microseconds / 1000]
        return {
          plan: nameOf(plan),
          peer: false,
          dtype,
          dims,
          samples,
          milliseconds: summarise(samples),
          launches: report.totals.launches,
          profile: profileOf(report),
        }
      })
    },
  }
}

/** Priced time by kernel, the longest first. */
function profileOf({ steps }: PlanReport): SuiteCell['profile'] {
  const byKernel = new Map<string, { count: number; milliseconds: number }>()
  for (const { kernel, microseconds } of steps) {
    const { count = 0, milliseconds = 0 } = byKernel.get(kernel) ?? {}
    byKernel.set(kernel, { count: count + 1, milliseconds: milliseconds + microseconds / 1000 })
  }
  return [...byKernel].map(([kernel, times]) => ({ kernel, ...times })).sort((a, b) => b.milliseconds - a.milliseconds)
}
