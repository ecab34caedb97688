/**
 * Which plan runs a model when nobody names one: the one with the fewest launches whose products suit the device. Tensor cores make
 * generated products as fast as a library's, and fused ones faster; without them (float32, older GPUs, the CPU device) a library's win by
 * far, so that a generated one counts as many launches. Plans that change what is computed, which int8 does, are nobody's default but that of
 * models that were made for it: whose weights are stored as int8, with activations to be quantised as the model runs.
 */
import type { Manifest } from '../emit/manifest.js'
import type { DType } from '../ir/dtype.js'
import { getOwn } from '../ir/get_own.js'
import { computesInt8, type Graph } from '../ir/graph.js'
import { resolveDType } from '../ir/instance.js'
import { kernelName } from '../ir/op_name.js'
import { defaultPlan } from '../program/plans.js'
import type { NativeDeviceInfo } from './native.js'

export interface ChosenPlan {
  readonly name: string
  /** Why, for a line behind the name. */
  readonly reason: string
}

type Types = Readonly<Record<string, DType>>

/** A graph as a plan has it, with the storage types of its type parameters; a graph that is used several times comes several times. */
export interface PricedGraph {
  readonly graph: Graph
  readonly types: Types
}

/** What a generated product without tensor cores counts as: FP32 products of a library are several times faster. */
const slowProduct = 10

/** Why the plan that fuses nothing is the one for the CPU device: launches cost nothing there. */
const ownProducts = { name: defaultPlan, reason: "products are the device's own" } as const

const hasTensorCores = ({ kind, computeCapability }: NativeDeviceInfo, dtype: DType): boolean =>
  kind === 'cuda' && (dtype === 'f16' || dtype === 'bf16') && Number(computeCapability ?? 0) >= 8

/** What a model was made to compute its products with: floats, or int8 rows of activations by int8 weights. */
export type Products = 'float' | 'int8'

/**
 * @param layers names of the graphs that a model repeats: a plan has to cover all of them
 * @param products where these are int8 and no plan covers the model so, the model's int8 weights are taken for the floats they stand for, and
 * the reason says so
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
  return { name, reason: `${reason}; its int8 weights are taken for floats, as no plan covers ${what} in int8` }
}

export interface Choosing {
  readonly manifest: Manifest
  readonly info: NativeDeviceInfo
  /** The type that products are stored in. */
  readonly dtype: DType
  /** What a plan has to cover, for the reason. */
  readonly what: string
}

type GraphsOf = (plan: string) => readonly PricedGraph[] | undefined

/** @param graphsOf what a plan makes of the model; undefined for one that does not cover it */
export function chooseAmong(plans: readonly string[], graphsOf: GraphsOf, choosing: Choosing): ChosenPlan {
  const { info, dtype, what } = choosing
  if (info.kind === 'simt') return ownProducts
  const [best] = pricedPlans(plans, graphsOf, choosing, 'float')
  if (best === undefined) return { name: defaultPlan, reason: `no plan covers ${what} in ${dtype}` }
  const products = hasTensorCores(info, dtype)
    ? 'tensor cores for its products'
    : `products by the library, ${dtype} has no tensor cores here`
  return { name: best.name, reason: `fewest launches in ${dtype}; ${products}` }
}

/** The plans that cover a model with such products, the cheapest first. */
function pricedPlans(plans: readonly string[], graphsOf: GraphsOf, { manifest, info, dtype }: Choosing, products: Products) {
  // Tensor cores multiply int8 whatever floats are stored in.
  const tensorCores = products === 'int8' || hasTensorCores(info, dtype)
  const fits = ({ graph }: PricedGraph): boolean => (products === 'int8' ? computesInt8(graph) : graph.int8 === undefined)
  const priced = plans.flatMap((name) => {
    const graphs = graphsOf(name)
    if (graphs?.every(fits) !== true) return []
    const known = graphs.flatMap((each) => costOf(manifest, each, tensorCores) ?? [])
    return known.length < graphs.length ? [] : [{ name, cost: known.reduce((sum, cost) => sum + cost, 0) }]
  })
  return priced.sort((a, b) => a.cost - b.cost)
}

/** Launches of a graph; undefined where there are no kernels of these types. */
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
    // Products and attention have no schedules.
    if (!tensorCores && kernel.variants.length === 0) cost += slowProduct
  }
  return cost
}
