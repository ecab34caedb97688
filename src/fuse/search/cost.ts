/**
 * The cost model of plans, stated in one place: a step takes a fixed time and then the longer of moving its bytes and doing its arithmetic; steps run
 * one after the other. Automatic plans are chosen by it and `heddle plan` prints it, so that a prediction can be compared with a measurement.
 *
 * - Bytes: each tensor of a step once, as if nothing were cached; a gather counts the elements that it fetches, an update in place those that it
 * replaces. A row program whose kept rows exceed the registers reads its tensors once in each pass that uses them.
 * - Arithmetic: that of matmuls and attention, at the rate of the operands' type, and of factors that a matmul computes, as often as it does. Row
 * programs are taken to be bound by bytes.
 * - Only relations between plans are meant: overlap of steps, caches and tails are left out for all plans alike.
 */
import { usageError } from '../../errors.js'
import { type DType, dtypeInfo } from '../../ir/dtype.js'
import { type Graph, type GraphNode, inputsOf, type NodeOf, type ValueId } from '../../ir/graph.js'
import type { Instance } from '../../ir/instance.js'
import type { DTypeRef, Kernel } from '../../ir/kernel.js'
import { factorsOf, sumsIntegers } from '../../ir/product.js'
import { evaluateExtent } from '../../ir/shape.js'
import { isTemplate, type TemplateKernel } from '../../ir/template.js'
import type { PlanDecl } from '../../lang/plan.js'
import { valueAt } from '../graph/edit.js'
import { type ComputedWork, computedWork } from './computed.js'
import { attentionExtents, attentionReads, decodeExtents, decodeReads, readsOf, type Sizes } from './reads.js'
import { walkOf } from './registers.js'
import { placed, storedOf } from './writes.js'

/** Storage types of activations and weights a plan can be priced in. */
export const priceTypes = ['f32', 'f16', 'bf16'] as const
export type PriceType = (typeof priceTypes)[number]

/** Parameters of a device in the model. */
export interface CostDevice {
  /** Bytes per second. */
  readonly bandwidth: number
  /** Operations per second: in a storage type of floats, and on int8. */
  readonly peak: Readonly<Record<PriceType | 'i8', number>>
  /** Share of the peak of 16-bit floats that main loops without warpgroup instructions reach. */
  readonly warps: number
  /** Seconds before a step moves a byte, and those of a step with a matmul, whose pipeline has to fill and drain. */
  readonly launch: number
  readonly product: number
}

/**
 * Inside a CUDA graph on an H200, from whole passes of BERT-base over one sequence of 32 tokens, in f16: 144 fewer row kernels save 0.179 ms. In
 * a pass with 96 matmuls, fused or not, launches and bytes leave 2.8 us per matmul unexplained.
 */
const graphs = { launch: 1.2e-6, product: 4.0e-6 } as const

const devices = {
  /**
   * Measured: a large copy, an 8192^3 matmul; f32 is CUDA-core arithmetic. Tensor cores multiply int8 twice as fast as halves. Three matmuls of
   * 4096 x 768 by 768 x 768 in one kernel take 28 us more than stacked: 304e12 operations per second.
   */
  h200: { bandwidth: 4.26e12, peak: { f32: 60e12, f16: 751e12, bf16: 751e12, i8: 1502e12 }, warps: 0.4, ...graphs },
  /** NVIDIA's data sheet of the A100 80 GB SXM: peaks, not measurements, so times are optimistic. Launches are the H200's. */
  a100: { bandwidth: 2.039e12, peak: { f32: 19.5e12, f16: 312e12, bf16: 312e12, i8: 624e12 }, warps: 1, ...graphs },
  /** Not measured: orders of magnitude of one CPU core that runs threads as fibers. Arithmetic dominates. */
  simt: { bandwidth: 1e9, peak: { f32: 1e8, f16: 5e7, bf16: 5e7, i8: 1e8 }, warps: 1, launch: 1e-5, product: 1e-5 },
} as const satisfies Readonly<Record<string, CostDevice>>

/** Prices are sums of floats: a difference of fewer seconds is rounding, not a gain. */
export const leastGain = 1e-12

export const costDevices = Object.keys(devices) as readonly (keyof typeof devices)[]

/** @throws usage `cost.device` naming the known devices */
export function costDevice(name: string): CostDevice {
  const found = costDevices.find((known) => known === name)
  if (found === undefined)
    throw usageError('cost.device', `no cost model of device ${name}`, { hint: `known: ${costDevices.join(', ')}` })
  return devices[found]
}

/** Parameters of a price besides the plan. */
export interface Pricing {
  readonly device: CostDevice
  /** The graph's dimensions. */
  readonly dims: Readonly<Record<string, number>>
  readonly dtype: PriceType
}

/** Dimensions for which a graph is priced: those given, else its typical ones. Sequences are full, unless the number of packed rows is given. */
export function priceDims(graph: Graph, packed: PlanDecl['packed'], given: Pricing['dims'] = {}): Pricing['dims'] {
  const dims = { ...graph.typical, ...given }
  if (packed === undefined || dims[packed.tokens] !== undefined) return dims
  const [batch, seq] = [dims[packed.batch], dims[packed.seq]]
  return batch === undefined || seq === undefined ? dims : { ...dims, [packed.tokens]: batch * seq }
}

/** Cost of one launch. */
export interface StepCost {
  readonly bytesRead: number
  readonly bytesWritten: number
  readonly flops: number
  /** True if rows exceed the registers and are read in every pass. */
  readonly rereads: boolean
  readonly seconds: number
}

type StepNode = Exclude<GraphNode, { kind: 'view' }>

/**
 * The price of one node of a graph.
 * @param kernel that an op node launches; a matmul node is a library matmul
 * @throws usage `graph.dim` for a dimension that the dimensions of `pricing` lack
 */
export function stepCost(graph: Graph, node: StepNode, kernel: Kernel | TemplateKernel | undefined, pricing: Pricing): StepCost {
  if (node.kind === 'matmul') return libraryCost(graph, node, pricing)
  if (kernel === undefined) throw new Error(`internal: no kernel ${node.op} to price`)
  return kernelCost(graph, node, kernel, pricing)
}

const sizeOf = (graph: Graph, id: ValueId, { dims }: Pricing): number =>
  valueAt(graph.values, id).shape.reduce((product, extent) => product * evaluateExtent(extent, dims), 1)

const storageType = (ref: DTypeRef | undefined, { dtype }: Pricing): DType => (typeof ref === 'string' ? ref : dtype)

const bytesOf = (graph: Graph, id: ValueId, elements: number, pricing: Pricing): number =>
  elements * dtypeInfo[storageType(valueAt(graph.values, id).dtype, pricing)].bytes

/** Price of a library matmul. An epilogue reads its bias and residual, once each. */
function libraryCost(graph: Graph, node: NodeOf<'matmul'>, pricing: Pricing): StepCost {
  const { a, b, out, subscripts } = node
  const extents: Record<string, number> = {}
  for (const [axes, id] of [
    [subscripts.a, a],
    [subscripts.b, b],
  ] as const) {
    axes.forEach((axis, i) => {
      const extent = valueAt(graph.values, id).shape[i]
      if (extent !== undefined) extents[axis] = evaluateExtent(extent, pricing.dims)
    })
  }
  const whole = (id: ValueId) => bytesOf(graph, id, sizeOf(graph, id, pricing), pricing)
  const flops = 2 * Object.values(extents).reduce((product, extent) => product * extent, 1)
  const read = inputsOf(node).reduce((bytes, id) => bytes + whole(id), 0)
  const isInteger = [a, b].every((id) => valueAt(graph.values, id).dtype === 'i8')
  return price({ bytesRead: read, bytesWritten: whole(out), flops, rereads: false }, pricing, { isInteger })
}

function kernelCost(graph: Graph, node: NodeOf<'op'>, derived: Kernel | TemplateKernel, pricing: Pricing): StepCost {
  const kernel = isTemplate(derived) ? derived : placed(derived)
  const sizes = sizesOf(graph, node, kernel, pricing)
  const types = Object.fromEntries(Object.keys(kernel.types).map((param) => [param, storageType(node.types[param], pricing)]))
  const { reads, flops, again, rereads, ...arithmetic } = work(kernel, types, sizes)
  const stored = storedOf(kernel, sizes)
  let [bytesRead, bytesWritten] = [0, 0]
  for (const { name, access } of kernel.tensors) {
    const id = node.inputs[name] ?? node.outputs[name]
    if (id === undefined) throw new Error(`internal: ${node.name} binds no value to ${name}`)
    const size = sizeOf(graph, id, pricing)
    if (access === 'out') bytesWritten += bytesOf(graph, id, Math.min(size, stored.get(name) ?? size), pricing)
    else bytesRead += bytesOf(graph, id, Math.min(size, reads.get(name) ?? 0) * (again.get(name) ?? 1), pricing)
  }
  return price({ bytesRead, bytesWritten, flops, rereads }, pricing, arithmetic)
}

/** Arithmetic of a matmul other than multiplying floats. */
interface Arithmetic {
  /** Work of factors that a matmul computes. */
  readonly computed?: ComputedWork
  /** True if it multiplies int8. */
  readonly isInteger?: boolean
  /** True if its main loop is one of warps: with more than two matmuls, and with computed right factors. */
  readonly byWarps?: boolean
}

interface Work extends Arithmetic {
  /** Elements read of each tensor, before its size limits them. */
  readonly reads: ReadonlyMap<string, number>
  readonly flops: number
  /** Number of reads of each tensor; one if missing. */
  readonly again: ReadonlyMap<string, number>
  readonly rereads: boolean
}

function work(kernel: Kernel | TemplateKernel, types: Instance['types'], sizes: Sizes): Work {
  const once = { again: new Map<string, number>(), rereads: false }
  if (!isTemplate(kernel)) {
    const { passes, rereads } = walkOf(kernel, types, sizes)
    return { reads: readsOf(kernel, sizes), flops: 0, again: rereads ? passes : once.again, rereads }
  }
  switch (kernel.kind) {
    case 'attention': {
      const { batch, heads, queries, headDim } = attentionExtents(kernel, sizes)
      return { ...once, reads: attentionReads(kernel, sizes), flops: 4 * batch * heads * queries ** 2 * headDim }
    }
    case 'decode attention': {
      const { batch, heads, queries, headDim, places } = decodeExtents(kernel, sizes)
      return { ...once, reads: decodeReads(kernel, sizes), flops: 4 * batch * heads * queries * places * headDim }
    }
    case 'matmul': {
      const [m, n, k] = [kernel.m, kernel.n, kernel.k].map((dim) => sizes.dims[dim] ?? 0)
      const matrices = kernel.batch.reduce((product, dim) => product * (sizes.dims[dim] ?? 0), kernel.products.length)
      const operands = factorsOf(kernel).flatMap(({ tensor, prologue }): [string, number][] =>
        prologue === undefined ? [[tensor, Number.POSITIVE_INFINITY]] : [...readsOf(prologue, sizes)],
      )
      const reads = new Map([...readsOf(kernel.epilogue, sizes), ...operands])
      const flops = 2 * matrices * (m ?? 0) * (n ?? 0) * (k ?? 0)
      const isInteger = sumsIntegers(kernel)
      const byWarps = !isInteger && (kernel.products.length > 2 || kernel.products.some(({ b }) => b.prologue !== undefined))
      return { ...once, reads, flops, computed: computedWork(kernel, sizes), isInteger, byWarps }
    }
  }
}

/** The kernel's dimensions and attributes in this node. Attributes that the model supplies keep their defaults. */
function sizesOf(graph: Graph, node: NodeOf<'op'>, kernel: Kernel | TemplateKernel, pricing: Pricing): Sizes {
  const dims: Record<string, number> = {}
  for (const tensor of kernel.tensors) {
    const id = node.inputs[tensor.name] ?? node.outputs[tensor.name]
    const shape = id === undefined ? [] : valueAt(graph.values, id).shape
    tensor.dims.forEach((dim, i) => {
      const extent = shape[i]
      if (extent !== undefined) dims[dim] = evaluateExtent(extent, pricing.dims)
    })
  }
  const attrs = Object.fromEntries(
    kernel.attrs.map(({ name, default: fallback }) => {
      const given = node.attrs[name]
      if (typeof given === 'number') return [name, given]
      return [
        name,
        given !== undefined && 'dim' in given ? evaluateExtent({ factor: 1, dims: [given.dim] }, pricing.dims) : fallback,
      ]
    }),
  )
  return { dims, attrs }
}

/** Prices the work of a step. Computed factors add to the arithmetic of the matmul; a factor that is stored first adds a launch. */
function price(
  step: Omit<StepCost, 'seconds'>,
  { device, dtype }: Pricing,
  { computed: { operations, stored } = { operations: 0, stored: [] }, isInteger = false, byWarps = false }: Arithmetic,
): StepCost {
  const { bytesRead, bytesWritten, flops } = step
  const moving = (bytesRead + bytesWritten) / device.bandwidth
  const rate = device.peak[isInteger ? 'i8' : dtype] * (byWarps && dtype !== 'f32' ? device.warps : 1)
  const computing = flops / rate + operations / device.peak.f32
  const storing = stored.map((elements) => device.launch + (2 * elements * dtypeInfo[dtype].bytes) / device.bandwidth)
  const fixed = flops > 0 ? device.product : device.launch
  return { ...step, seconds: storing.reduce((sum, seconds) => sum + seconds, fixed + Math.max(moving, computing)) }
}
