/**
 * Which plan runs a model when nobody names one: the one with the fewest launches whose products suit the device. Tensor cores make
 * generated products as fast as a library's, and fused ones faster; without them (float32, older GPUs, the CPU device) a library's win by
 * far, so that a generated one counts as many launches. Plans that change what is computed, which int8 does, are nobody's default.
 */
import type { Manifest } from '../../emit/manifest.js'
import { defaultPlan } from '../../program/plans.js'
import type { NativeDeviceInfo } from '../../runtime/native.js'
import type { FloatType } from '../files/convert.js'

export interface ChosenPlan {
  readonly name: string
  /** Why, for a line behind the name. */
  readonly reason: string
}

/** What a generated product without tensor cores counts as: FP32 products of a library are several times faster. */
const slowProduct = 10

const hasTensorCores = ({ kind, computeCapability }: NativeDeviceInfo, dtype: FloatType): boolean =>
  kind === 'cuda' && dtype !== 'f32' && Number(computeCapability ?? 0) >= 8

/** @param layers names of the graphs that a model repeats: a plan has to cover all of them */
export function choosePlan(manifest: Manifest, info: NativeDeviceInfo, dtype: FloatType, layers: readonly string[]): ChosenPlan {
  // On the CPU device launches cost nothing, and its own matmul computes the products of the plan that fuses none.
  if (info.kind === 'simt') return { name: defaultPlan, reason: "products are the device's own" }
  const tensorCores = hasTensorCores(info, dtype)
  const priced = Object.keys(manifest.plans ?? {}).flatMap((name) => {
    const costs = layers.map((layer) => costOf(manifest, name, layer, dtype, tensorCores))
    const known = costs.flatMap((cost) => (cost === undefined ? [] : [cost]))
    return known.length < layers.length ? [] : [{ name, cost: known.reduce((sum, cost) => sum + cost, 0) }]
  })
  const [best] = priced.sort((a, b) => a.cost - b.cost)
  if (best === undefined) return { name: defaultPlan, reason: `no plan covers ${layers.join(' and ')} in ${dtype}` }
  const products = tensorCores ? 'tensor cores for its products' : `products by the library, ${dtype} has no tensor cores here`
  return { name: best.name, reason: `fewest launches in ${dtype}; ${products}` }
}

/** Launches of a layer under a plan; undefined where the plan does not have it, or not in this type, or computes with int8. */
function costOf(
  { plans, kernels }: Manifest,
  plan: string,
  layer: string,
  dtype: FloatType,
  tensorCores: boolean,
): number | undefined {
  const graphs = plans !== undefined && Object.hasOwn(plans, plan) ? plans[plan] : undefined
  const graph = graphs !== undefined && Object.hasOwn(graphs, layer) ? graphs[layer] : undefined
  if (graph === undefined || graph.int8 !== undefined) return undefined
  let cost = 0
  for (const node of graph.nodes) {
    if (node.kind === 'view') continue
    cost += 1
    if (node.kind === 'matmul') continue
    const kernel = kernels.find(({ op, types }) => op === node.op && Object.values(types).every((type) => type === dtype))
    if (kernel === undefined) return undefined
    // Products and attention have no schedules.
    if (!tensorCores && kernel.variants.length === 0) cost += slowProduct
  }
  return cost
}
