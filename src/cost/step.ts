/**
 * The cost model of plans: prices of the nodes of a graph, which run one after the other. A row kernel is priced by the launches that its schedule
 * makes of it (launch.ts). A matmul or attention takes a fixed time and then the longer of moving its bytes and doing its arithmetic. Automatic plans
 * are chosen by it and `heddle plan` prints it, so that a prediction can be compared with a measurement.
 *
 * - Bytes of matmuls and attention: each tensor of a step once, as if nothing were cached; a gather counts the elements that it fetches, an update
 * in place those that it replaces.
 * - Their arithmetic: at the rate of the operands' type, and of factors that a matmul computes, as often as it does.
 * - Only relations between plans are meant: overlap of steps and what earlier steps leave in caches are left out for all plans alike.
 */

import { valueAt } from '../fuse/graph/edit.js'
import { type DType, dtypeInfo } from '../ir/dtype.js'
import { type Graph, type GraphNode, inputsOf, type NodeOf, type ValueId } from '../ir/graph.js'
import type { DTypeRef, Kernel } from '../ir/kernel.js'
import { factorsOf, sumsIntegers } from '../ir/product.js'
import { evaluateExtent } from '../ir/shape.js'
import { isTemplate, type TemplateKernel } from '../ir/template.js'
import type { PlanDecl } from '../lang/plan.js'
import { attentionWork } from './attention.js'
import { type ComputedWork, computedWork } from './computed.js'
import type { CostDevice, PriceType } from './device.js'
import { kernelParts } from './kernel.js'
import type { LaunchCost } from './launch.js'
import { reducedParts, sharedBytes } from './reduced.js'
import type { Sizes } from './sizes.js'
import { attentionReads, decodeExtents, decodeReads, readsOf } from './template_reads.js'
import { storedOf } from './writes.js'

/** Parameters of a price besides the plan. */
export interface Pricing {
  readonly device: CostDevice
  /** The graph's dimensions. */
  readonly dims: Readonly<Record<string, number>>
  readonly dtype: PriceType
  /** True for a kernel on its own, whose inputs no cache holds. */
  readonly isCold?: boolean
}

/** Dimensions for which a graph is priced: those given, else its typical ones. Sequences are full, unless the number of packed rows is given. */
export function priceDims(graph: Graph, packed: PlanDecl['packed'], given: Pricing['dims'] = {}): Pricing['dims'] {
  const dims = { ...graph.typical, ...given }
  if (packed === undefined || dims[packed.tokens] !== undefined) return dims
  const [batch, seq] = [dims[packed.batch], dims[packed.seq]]
  return batch === undefined || seq === undefined ? dims : { ...dims, [packed.tokens]: batch * seq }
}

/** Cost of a node. */
export interface StepCost {
  /** Each element once, or once in every pass that reads it again. */
  readonly bytesRead: number
  readonly bytesWritten: number
  readonly flops: number
  /** True if rows exceed the registers and are read in every pass. */
  readonly rereads: boolean
  readonly launches: number
  readonly seconds: number
  /** Launches of a row kernel, or of a matmul whose rows are reduced, in order of execution; empty for other matmuls and attention. */
  readonly parts: readonly LaunchCost[]
}

/** Cost of a node of one launch, before its time is known. */
type Moved = Pick<StepCost, 'bytesRead' | 'bytesWritten' | 'flops'>

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

/** Extents of the axes of a matmul, by subscript. */
function axesOf(graph: Graph, { a, b, subscripts }: NodeOf<'matmul'>, pricing: Pricing): Readonly<Record<string, number>> {
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
  return extents
}

/** Price of a library matmul. An epilogue reads its bias and residual, once each. */
function libraryCost(graph: Graph, node: NodeOf<'matmul'>, pricing: Pricing): StepCost {
  const { a, b, out } = node
  const extents = axesOf(graph, node, pricing)
  const whole = (id: ValueId) => bytesOf(graph, id, sizeOf(graph, id, pricing), pricing)
  const flops = 2 * Object.values(extents).reduce((product, extent) => product * extent, 1)
  const read = inputsOf(node).reduce((bytes, id) => bytes + whole(id), 0)
  const isInteger = [a, b].every((id) => valueAt(graph.values, id).dtype === 'i8')
  return price({ bytesRead: read, bytesWritten: whole(out), flops }, pricing, { isInteger })
}

function kernelCost(graph: Graph, node: NodeOf<'op'>, derived: Kernel | TemplateKernel, pricing: Pricing): StepCost {
  const types = Object.fromEntries(Object.keys(derived.types).map((param) => [param, storageType(node.types[param], pricing)]))
  if (!isTemplate(derived)) {
    return rowsCost(kernelParts(derived, types, sizesOf(graph, node, derived, pricing), deviceOf(pricing)))
  }
  const sizes = sizesOf(graph, node, derived, pricing)
  const { reads, flops, ...arithmetic } = work(derived, sizes, pricing.dtype)
  const stored = storedOf(derived, sizes)
  let [bytesRead, bytesWritten] = [0, 0]
  const reduced = derived.kind === 'matmul' ? derived.reduced : undefined
  if (reduced !== undefined) bytesWritten = sharedBytes(reduced, sizes)
  for (const { name, access } of derived.tensors) {
    if (reduced !== undefined && access === 'out') continue
    const id = node.inputs[name] ?? node.outputs[name]
    if (id === undefined) throw new Error(`internal: ${node.name} binds no value to ${name}`)
    const size = sizeOf(graph, id, pricing)
    if (access === 'out') bytesWritten += bytesOf(graph, id, Math.min(size, stored.get(name) ?? size), pricing)
    else bytesRead += bytesOf(graph, id, Math.min(size, reads.get(name) ?? 0), pricing)
  }
  const launched = arithmetic.computed?.launched ?? []
  const before = launched.flatMap((prologue) => kernelParts(prologue, types, sizes, deviceOf(pricing)))
  const cost = price({ bytesRead, bytesWritten, flops }, pricing, { ...arithmetic, before })
  if (derived.kind !== 'matmul' || reduced === undefined) return cost
  const all = rowsCost(reducedParts(derived, reduced, cost, types, sizes, deviceOf(pricing)))
  return { ...all, launches: all.launches + cost.launches - 1 }
}

/**
 * The device of a price. Steps of a plan find in caches what the steps before them have stored, and their launches overlap: the time that walks
 * wait for memory is left out.
 */
const deviceOf = ({ device, isCold = false }: Pricing): CostDevice =>
  isCold ? device : { ...device, rates: { ...device.rates, walk: 0 } }

/** Price of a row kernel with these launches. */
export function rowsCost(parts: readonly LaunchCost[]): StepCost {
  const sum = (of: (part: LaunchCost) => number): number => parts.reduce((total, part) => total + of(part), 0)
  return {
    bytesRead: sum((part) => part.bytesRead),
    bytesWritten: sum((part) => part.bytesWritten),
    flops: sum((part) => part.flops ?? 0),
    rereads: parts.some(({ rereads }) => rereads),
    launches: parts.length,
    seconds: sum((part) => part.seconds),
    parts,
  }
}

/** Arithmetic of a matmul other than multiplying floats. */
interface Arithmetic {
  /** Work of factors that a matmul computes. */
  readonly computed?: ComputedWork
  /** Launches that store factors first. */
  readonly before?: readonly LaunchCost[]
  /** True if it multiplies int8. */
  readonly isInteger?: boolean
  /** True if its main loop is one of warps: with more than two matmuls, and with computed right factors. */
  readonly byWarps?: boolean
  /** Operations that are done for each that counts, since tiles are wider than rows. */
  readonly padded?: number
  /** Weights of attention. */
  readonly weights?: number
  /** Instructions of single threads for rows that attention computes, and the number of times that a block waits for their loads. */
  readonly instructions?: number
  readonly waits?: number
}

interface Work extends Arithmetic {
  /** Elements read of each tensor, before its size limits them. */
  readonly reads: ReadonlyMap<string, number>
  readonly flops: number
}

function work(kernel: TemplateKernel, sizes: Sizes, dtype: DType): Work {
  switch (kernel.kind) {
    case 'attention':
      return { reads: attentionReads(kernel, sizes), ...attentionWork(kernel, sizes) }
    case 'decode attention': {
      const { batch, heads, queries, headDim, places } = decodeExtents(kernel, sizes)
      return { reads: decodeReads(kernel, sizes), flops: 4 * batch * heads * queries * places * headDim }
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
      const most = kernel.reduced === undefined ? 2 : 1
      const byWarps = !isInteger && (kernel.products.length > most || kernel.products.some(({ b }) => b.prologue !== undefined))
      return { reads, flops, computed: computedWork(kernel, sizes, dtype), isInteger, byWarps }
    }
  }
}

/** Extents of a node's dimensions: of its kernel in their order, or of the axes of a library matmul. */
export function extentsOf(
  graph: Graph,
  node: StepNode,
  kernel: Kernel | TemplateKernel | undefined,
  pricing: Pricing,
): readonly number[] {
  if (node.kind === 'matmul') return Object.values(axesOf(graph, node, pricing))
  if (kernel === undefined) throw new Error(`internal: no kernel ${node.op}`)
  const { dims } = sizesOf(graph, node, kernel, pricing)
  return kernel.dims.map((dim) => dims[dim] ?? 1)
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

/** Issue slots that an exponential takes: its unit has a quarter of the lanes, and its sum, maximum and rounding follow. */
const weightInstructions = 6
/** Blocks of a multiprocessor that compute rows of attention at the same time. */
const residentBlocks = 2

/** Prices the work of a step. Computed factors add to the arithmetic of the matmul; a factor that is stored first adds a launch. */
function price(
  step: Moved,
  { device, dtype }: Pricing,
  {
    computed: { operations, stored } = { operations: 0, stored: [], launched: [] },
    before = [],
    isInteger = false,
    byWarps = false,
    padded = 1,
    weights = 0,
    instructions = 0,
    waits = 0,
  }: Arithmetic,
): StepCost {
  const { bytesRead, bytesWritten, flops } = step
  const moving = (bytesRead + bytesWritten) / device.bandwidth
  const rate = device.peak[isInteger ? 'i8' : dtype] * (byWarps && dtype !== 'f32' ? device.warps : 1)
  const { issue, access, multiprocessors } = device.rates
  const multiplying = Math.max((flops * padded) / rate, (weights * weightInstructions) / issue)
  const rows = instructions / issue + (waits * access) / (multiprocessors * residentBlocks)
  const computing = multiplying + operations / device.peak.f32 + rows
  const storing = [
    ...before.map(({ seconds }) => seconds),
    ...stored.map((elements) => device.launch + (2 * elements * dtypeInfo[dtype].bytes) / device.bandwidth),
  ]
  const fixed = flops > 0 ? device.product : device.launch
  const seconds = storing.reduce((sum, each) => sum + each, fixed + Math.max(moving, computing))
  return { ...step, rereads: false, launches: 1 + storing.length, seconds, parts: [] }
}
