/** Runs described graphs under their plans and compares the results with the float64 reference of the graph. */
import type { GraphDecl } from '../../src/lang/graph.js'
import type { Device } from '../../src/runtime/api/index.js'
import { contentOf } from './data.js'
import { drawGraph } from './draw_graph.js'
import { drawPlan } from './draw_plan.js'
import type { Held } from './evaluate.js'
import { runGraph, type StoredBy } from './evaluate_graph.js'
import { dimsOf, type GraphDesc, type PlanDesc, type StoredDesc } from './graph_describe.js'
import type { DeviceKind } from './house.js'
import { judge, together, type Verdict } from './judge.js'
import { exportName } from './print.js'
import { graphOf, printGraph, printIndex, printPlan } from './print_graph.js'
import { isRefusal, Project, type Refusal } from './project.js'
import { Random, seedOf } from './random.js'
import { hostTensor, numbersOf } from './run_ops.js'
import { exact } from './value.js'

/** A graph, plans of it, and the seed of its cases. */
export interface GraphSubject {
  readonly graph: GraphDesc
  readonly plans: readonly PlanDesc[]
  readonly seed: number
}

export interface GraphFailure {
  readonly subject: GraphSubject
  /** The plan: `unfused` for the graph itself. */
  readonly plan: string
  readonly kind: string
  readonly message: string
}

export interface GraphReport {
  readonly graphs: number
  /** Plans that the compiler took, and that were run. */
  readonly plans: number
  readonly refused: readonly Refusal[]
  readonly failures: readonly GraphFailure[]
  readonly verdict: Verdict
}

/** The n-th graph of a seed, with different plans: the requested number, if a few draws find them. */
export function drawSubject(seed: number, at: number, wanted: number): GraphSubject {
  const own = seedOf(seed ^ 0x5bd1e995, at)
  const graph = drawGraph(own, `net_${at}`)
  const plans = new Map<string, PlanDesc>()
  for (let i = 0; i < 4 * wanted && plans.size < wanted; i++) {
    const plan = drawPlan(graph, seedOf(own, i), `plan_${at}_${i}`)
    const key = JSON.stringify([{ ...plan, name: '', groups: plan.groups.toSorted() }])
    if (plan.groups.length > 0 && !plans.has(key)) plans.set(key, plan)
  }
  return { graph, plans: [...plans.values()], seed: own }
}

const lengths: Readonly<Record<string, readonly number[]>> = {
  b: [1, 2, 3],
  h: [1, 2, 3],
  m: [1, 2, 5, 16, 17, 33],
  s: [1, 2, 7, 16, 17, 33],
  t: [1, 3, 8, 16, 31, 33],
  d: [8, 16, 32, 64],
  n: [1, 7, 8, 24, 33, 64, 72],
  k: [1, 8, 13, 16, 40, 64, 65],
  p: [1, 8, 16, 40],
}

/** Sizes and inputs of a graph. */
interface GraphCase {
  readonly sizes: Readonly<Record<string, number>>
  readonly given: ReadonlyMap<string, Held>
  /** Lengths of sequences, where rows are theirs. */
  readonly ends?: readonly number[]
}

/** Sizes and inputs. */
export function drawCaseOf(graph: GraphDesc, seed: number): GraphCase {
  const random = new Random(seed)
  const sizes = Object.fromEntries(dimsOf(graph).map((dim) => [dim, random.pick(lengths[dim] ?? [1, 2, 3])]))
  const given = graph.given.map((each) => {
    const dtype = each.dtype === 'T' ? graph.main : each.dtype
    return [each.name, contentOf({ ...each, dtype }, random, sizes, false)] as const
  })
  if (graph.isRagged !== true) return { sizes, given: new Map(given) }
  const own = new Map(given).get('lengths')?.values.map(({ v }) => v)
  const ends = own ?? Array.from({ length: sizes.b ?? 1 }, () => random.between(0, sizes.s ?? 1))
  return { sizes, given: new Map(given), ends }
}

const casesOfEach = 2

export async function runGraphs(kind: DeviceKind, subjects: readonly GraphSubject[]): Promise<GraphReport> {
  const modules = new Map<string, string>()
  for (const { graph } of subjects) modules.set(graph.name, printGraph(graph))
  for (const { graph, plans } of subjects) for (const plan of plans) modules.set(plan.name, printPlan(graph, plan))
  const project = new Project({ modules, index: printIndex, needs: graphOf })
  try {
    const device = await project.open(kind)
    const failures: GraphFailure[] = project.refused
      .filter(({ code }) => !isRefusal(code))
      .flatMap(({ name, code, message }) => {
        const subject = subjects.find(({ graph, plans }) => graph.name === name || plans.some((plan) => plan.name === name))
        return subject === undefined ? [] : [{ subject, plan: name.startsWith('net_') ? 'unfused' : name, kind: code, message }]
      })
    const verdicts: Verdict[] = []
    const running = subjects.filter(({ graph }) => project.kept.includes(graph.name))
    for (const subject of running) {
      if (device === undefined) break
      const decl = (await project.load(subject.graph.name))[exportName(subject.graph.name)] as GraphDecl
      const plans = ['unfused', ...subject.plans.map(({ name }) => name).filter((name) => project.kept.includes(name))]
      const ran = await runSubject(device, decl, subject, plans)
      verdicts.push(...ran.verdicts)
      failures.push(...ran.failures)
    }
    await device?.close()
    return {
      graphs: running.length,
      plans: project.kept.filter((name) => name.startsWith('plan_')).length,
      refused: project.refused.filter(({ code }) => isRefusal(code)),
      failures,
      verdict: together(verdicts),
    }
  } finally {
    project.remove()
  }
}

/** Each case under each plan, up to a plan's first failure. */
async function runSubject(device: Device, decl: GraphDecl, subject: GraphSubject, plans: readonly string[]) {
  const failures: GraphFailure[] = []
  const verdicts: Verdict[] = []
  for (let i = 0; i < casesOfEach; i++) {
    const drawn = drawCaseOf(subject.graph, seedOf(subject.seed, 100 + i))
    const { sizes, given } = drawn
    const plain = runGraph(subject.graph, given, sizes)
    for (const plan of plans) {
      if (failures.some((failure) => failure.plan === plan)) continue
      const fail = (kind: string, message: string): void =>
        void failures.push({ subject, plan, kind, message: `${plan} at ${JSON.stringify(sizes)}: ${message}` })
      try {
        const by = storedBy(subject.plans.find(({ name }) => name === plan)?.stored, plain, seedOf(subject.seed, i))
        const values = by === undefined ? plain : runGraph(subject.graph, given, sizes, by)
        const stored = await runOnce(device, decl, subject, plan, drawn, by?.scales)
        const verdict = together(
          subject.graph.outputs.map((name) => judged(drawn, name, values.get(name) ?? noTensor, stored.get(name) ?? [])),
        )
        verdicts.push(verdict)
        if (verdict.wrong > 0) fail('wrong', `${verdict.wrong} of ${verdict.elements} elements: ${verdict.first}`)
      } catch (error) {
        fail('fault', error instanceof Error ? error.message : String(error))
      }
    }
  }
  return { failures, verdicts }
}

const noTensor: Held = { dtype: 'f32', shape: [], values: [] }

/** Storage of a plan's values. Its scales are near the magnitudes of values: some clip, some leave room. */
function storedBy(stored: StoredDesc | undefined, values: ReadonlyMap<string, Held>, seed: number): StoredBy | undefined {
  if (stored === undefined) return undefined
  const random = new Random(seed)
  const scales = stored.values.map((name) => {
    const most = (values.get(name)?.values ?? []).reduce((top, { v }) => Math.max(top, Math.abs(v)), 0)
    return [name, Number.isFinite(most) && most > 0 ? Math.fround(most * random.pick([1, 0.75, 1.25])) : 1] as const
  })
  return { ...stored, scales: Object.fromEntries(scales) }
}

/** Rows of sequences after their ends have undefined contents. */
function judged({ ends, sizes }: GraphCase, name: string, expected: Held, actual: readonly number[]): Verdict {
  if (ends === undefined || actual.length !== expected.values.length) return judge(name, expected, actual)
  const [places = 1, width = 0] = [sizes.s, expected.shape.at(-1)]
  const inside = (i: number): boolean => {
    const row = Math.floor(i / Math.max(width, 1))
    return row % places < (ends[Math.floor(row / places)] ?? 0)
  }
  const kept = { ...expected, values: expected.values.filter((_, i) => inside(i)) }
  return judge(
    `${name} up to the ends ${ends.join(' ')}`,
    { ...kept, shape: [width === 0 ? 0 : kept.values.length / width, width] },
    actual.filter((_, i) => inside(i)),
  )
}

/** Dimensions without an input or a weight that has them alone. */
function unstated(graph: GraphDesc, sizes: GraphCase['sizes']): GraphCase['sizes'] {
  const stated = new Set(graph.given.flatMap(({ dims }) => dims))
  return Object.fromEntries(Object.entries(sizes).filter(([dim]) => !stated.has(dim)))
}

async function runOnce(
  device: Device,
  decl: GraphDecl,
  { graph, plans }: GraphSubject,
  plan: string,
  { sizes, given, ends }: GraphCase,
  scales: StoredBy['scales'] | undefined,
): Promise<ReadonlyMap<string, readonly number[]>> {
  const tensors = (isWeight: boolean): object =>
    Object.fromEntries(
      graph.given.flatMap((each) => {
        const held = given.get(each.name)
        return each.isWeight === isWeight && held !== undefined ? [[each.name, hostTensor(held)]] : []
      }),
    )
  // Only graphs with the parameter T accept a value for it.
  const dtype = [...graph.given, ...graph.nodes].some((value) => value.dtype === 'T') ? { dtype: graph.main } : {}
  const told = { ...dtype, ...(scales === undefined ? {} : { scales }) }
  const model = await device.load(decl, { plan, weights: tensors(true), dims: unstated(graph, sizes), ...told } as never)
  // A plan that removes padding needs lengths even if the graph has none.
  const isPacked = plans.some(({ name, isPacked: packed }) => name === plan && packed)
  const lengths =
    isPacked && ends !== undefined ? { lengths: hostTensor({ dtype: 'i32', shape: [ends.length], values: ends.map(exact) }) } : {}
  try {
    return numbersOf(await model.run({ ...lengths, ...tensors(false) } as never))
  } finally {
    model.close()
  }
}
