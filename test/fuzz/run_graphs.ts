/** Runs described graphs under their plans and holds what they give against the float64 meaning of the graph. */
import type { GraphDecl } from '../../src/lang/graph.js'
import type { Device } from '../../src/runtime/api/index.js'
import { contentOf } from './data.js'
import { drawGraph } from './draw_graph.js'
import { drawPlan } from './draw_plan.js'
import type { Held } from './evaluate.js'
import { runGraph } from './evaluate_graph.js'
import { dimsOf, type GraphDesc, type PlanDesc } from './graph_describe.js'
import type { DeviceKind } from './house.js'
import { judge, together, type Verdict } from './judge.js'
import { exportName } from './print.js'
import { graphOf, printGraph, printIndex, printPlan } from './print_graph.js'
import { isRefusal, Project, type Refusal } from './project.js'
import { Random, seedOf } from './random.js'
import { hostTensor, numbersOf } from './run_ops.js'

/** A graph, plans of it, and the seed of its cases. */
export interface GraphSubject {
  readonly graph: GraphDesc
  readonly plans: readonly PlanDesc[]
  readonly seed: number
}

export interface GraphFailure {
  readonly subject: GraphSubject
  /** The plan that it is of: `unfused` where it is the graph's. */
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

/** The n-th graph of a seed, with different plans: as many as asked for, where a few draws find them. */
export function drawSubject(seed: number, at: number, wanted: number): GraphSubject {
  const own = seedOf(seed ^ 0x5bd1e995, at)
  const graph = drawGraph(own, `net_${at}`)
  const plans = new Map<string, PlanDesc>()
  for (let i = 0; i < 4 * wanted && plans.size < wanted; i++) {
    const plan = drawPlan(graph, seedOf(own, i), `plan_${at}_${i}`)
    const key = JSON.stringify([plan.groups.toSorted(), plan.library.length])
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
}

/** Sizes of a graph, and what is given to it. */
interface GraphCase {
  readonly sizes: Readonly<Record<string, number>>
  readonly given: ReadonlyMap<string, Held>
}

/** Sizes, and what is given. */
export function drawCaseOf(graph: GraphDesc, seed: number): GraphCase {
  const random = new Random(seed)
  const sizes = Object.fromEntries(dimsOf(graph).map((dim) => [dim, random.pick(lengths[dim] ?? [1, 2, 3])]))
  const given = graph.given.map((each) => {
    const dtype = each.dtype === 'T' ? graph.main : each.dtype
    return [each.name, contentOf({ ...each, dtype }, random, sizes, false)] as const
  })
  return { sizes, given: new Map(given) }
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
    const { sizes, given } = drawCaseOf(subject.graph, seedOf(subject.seed, 100 + i))
    const values = runGraph(subject.graph, given, sizes)
    for (const plan of plans) {
      if (failures.some((failure) => failure.plan === plan)) continue
      const fail = (kind: string, message: string): void =>
        void failures.push({ subject, plan, kind, message: `${plan} at ${JSON.stringify(sizes)}: ${message}` })
      try {
        const stored = await runOnce(device, decl, subject.graph, plan, { sizes, given })
        const verdict = together(
          subject.graph.outputs.map((name) =>
            judge(name, values.get(name) ?? { dtype: 'f32', shape: [], values: [] }, stored.get(name) ?? []),
          ),
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

/** Dimensions that no input and no weight has by itself. */
function unstated(graph: GraphDesc, sizes: GraphCase['sizes']): GraphCase['sizes'] {
  const stated = new Set(graph.given.flatMap(({ dims }) => dims))
  return Object.fromEntries(Object.entries(sizes).filter(([dim]) => !stated.has(dim)))
}

async function runOnce(
  device: Device,
  decl: GraphDecl,
  graph: GraphDesc,
  plan: string,
  { sizes, given }: GraphCase,
): Promise<ReadonlyMap<string, readonly number[]>> {
  const tensors = (isWeight: boolean): object =>
    Object.fromEntries(
      graph.given.flatMap((each) => {
        const held = given.get(each.name)
        return each.isWeight === isWeight && held !== undefined ? [[each.name, hostTensor(held)]] : []
      }),
    )
  // Only graphs with the parameter T may be told what it is.
  const dtype = [...graph.given, ...graph.nodes].some((value) => value.dtype === 'T') ? { dtype: graph.main } : {}
  const model = await device.load(decl, { plan, weights: tensors(true), dims: unstated(graph, sizes), ...dtype } as never)
  try {
    return numbersOf(await model.run(tensors(false) as never))
  } finally {
    model.close()
  }
}
