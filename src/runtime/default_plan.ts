/**
 * Default plan of a model: the one with the fewest launches whose matmuls suit the device. With tensor cores, generated matmuls are as fast as those
 * of a library, and fused ones are faster. Without them (float32, older GPUs, the CPU device), library matmuls are much faster, so a generated one
 * counts as several launches. An int8 plan changes the computed values. It is the default only of models made for it: those with weights stored as
 * int8 and activations to be quantised at run time.
 */
import type { Manifest } from '../emit/manifest/manifest.js'
import type { DType } from '../ir/dtype.js'
import { getOwn } from '../ir/get_own.js'
import { computesInt8, type Graph } from '../ir/graph.js'
import { resolveDType } from '../ir/instance.js'
import { kernelName } from '../ir/op_name.js'
import { defaultPlan } from '../program/plans.js'
import type { NativeDeviceInfo } from './native.js'

export interface ChosenPlan {
  readonly name: string
  /** Reason, printed after the name. */
  readonly reason: string
}

type Types = Readonly<Record<string, DType>>

/** Graph of a plan with the storage types of its type parameters. A graph that is used several times is listed as often. */
export interface PricedGraph {
  readonly graph: Graph
  readonly types: Types
}

/** Cost of a generated matmul without tensor cores, in launches: FP32 matmuls of a library are several times faster. */
const slowMatmul = 10

/** The unfused plan, for devices without a GPU: launches cost nothing there. */
const unfusedPlan = { name: defaultPlan, reason: 'the device has its own matmul' } as const

const hasTensorCores = ({ kind, computeCapability }: NativeDeviceInfo, dtype: DType): boolean =>
  kind === 'cuda' && (dtype === 'f16' || dtype === 'bf16') && Number(computeCapability ?? 0) >= 8

/** Operands of a model's matmuls: floats, or int8 rows of activations and int8 weights. */
export type Products = 'float' | 'int8'

/**
 * @param layers names of the graphs that a model repeats: a plan has to cover all of them
 * @param products if int8 and no plan covers the model in int8, the int8 weights are dequantised to floats, and the reason says so
 */
export function choosePlan(
  manifest: Manifest,
  info: NativeDeviceInfo,
  dtype: 'f32' | 'f16' | 'bf16',
  layers: readonly string[],
  products: Products = 'float',
): ChosenPlan {
  const types = { T: dtype }
  const graphsOf = (plan: string): PricedGraph[] | undefined => {
    const graphs = getOwn(manifest.plans ?? {}, plan) ?? {}
    const found = layers.flatMap((layer) => getOwn(graphs, layer) ?? [])
    return found.length < layers.length ? undefined : found.map((graph) => ({ graph, types }))
  }
  const what = layers.join(' and ')
  const choosing = { manifest, info, dtype, what }
  const plans = Object.keys(manifest.plans ?? {})
  if (products === 'float') return chooseAmong(plans, graphsOf, choosing)
  const [best] = pricedPlans(plans, graphsOf, choosing, 'int8')
  if (best !== undefined)
    return { name: best.name, reason: 'int8 weights and activations, as the model is stored; fewest launches' }
  const { name, reason } = chooseAmong(plans, graphsOf, choosing)
  return { name, reason: `${reason}; its int8 weights are used as floats, as no plan covers ${what} in int8` }
}

export interface Choosing {
  readonly manifest: Manifest
  readonly info: NativeDeviceInfo
  /** Storage type of matmul results. */
  readonly dtype: DType
  /** Names of the graphs a plan has to cover, for the reason. */
  readonly what: string
}

type GraphsOf = (plan: string) => readonly PricedGraph[] | undefined

/** @param graphsOf graphs of the model under a plan; undefined if the plan does not cover it */
export function chooseAmong(plans: readonly string[], graphsOf: GraphsOf, choosing: Choosing): ChosenPlan {
  const { info, dtype, what } = choosing
  if (info.kind !== 'cuda') return unfusedPlan
  const [best] = pricedPlans(plans, graphsOf, choosing, 'float')
  if (best === undefined) return { name: defaultPlan, reason: `no plan covers ${what} in ${dtype}` }
  const products = hasTensorCores(info, dtype)
    ? 'tensor cores for its matmuls'
    : `matmuls by the library, ${dtype} has no tensor cores here`
  return { name: best.name, reason: `fewest launches in ${dtype}; ${products}` }
}

/** Plans that cover a model with matmuls of this kind, cheapest first. */
function pricedPlans(plans: readonly string[], graphsOf: GraphsOf, { manifest, info, dtype }: Choosing, products: Products) {
  // Tensor cores multiply int8 for every float storage type.
  const tensorCores = products === 'int8' || hasTensorCores(info, dtype)
  const fits = ({ graph }: PricedGraph): boolean => (products === 'int8' ? computesInt8(graph) : graph.int8 === undefined)
  const few = new Set(
    plans.flatMap((name) => graphsOf(name) ?? []).flatMap(({ graph }) => (graph.byRows?.few ?? []).map(({ plan }) => plan)),
  )
  const priced = plans.flatMap((name) => {
    const graphs = graphsOf(name)
    // A plan for few rows runs by way of the plan that names it.
    if (few.has(name) || graphs?.every(fits) !== true) return []
    const known = graphs.flatMap((each) => costOf(manifest, each, tensorCores) ?? [])
    return known.length < graphs.length ? [] : [{ name, cost: known.reduce((sum, cost) => sum + cost, 0) }]
  })
  return priced.sort((a, b) => a.cost - b.cost)
}

/** Launches of a graph; undefined if there are no kernels of these types. */
function costOf({ kernels }: Manifest, { graph, types }: PricedGraph, tensorCores: boolean): number | undefined {
  let cost = 0
  for (const node of graph.nodes) {
    if (node.kind === 'view') continue
    cost += 1
    if (node.kind === 'matmul') continue
    const wanted = Object.entries(node.types).map(([param, ref]) => [param, resolveDType(ref, types)] as const)
    const kernel = kernels.find(
      ({ op, types: of }) => op === kernelName(node.op) && wanted.every(([param, dtype]) => of[param] === dtype),
    )
    if (kernel === undefined) return undefined
    // Matmuls and attention have no schedules.
    if (!tensorCores && kernel.variants.length === 0) cost += slowMatmul
  }
  return cost
}
