/**
 * Data to try a group of nodes on: small extents that differ from each other, signed numbers, and integers that bodies may use as indices. Data
 * is drawn again when a body reads outside of a tensor, since a signature does not determine the valid indices.
 */
import { dtypeInfo } from '../../ir/dtype.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import { constrained } from '../../ir/facts/constrained.js'
import type { Count, Facts } from '../../ir/facts/facts.js'
import { type Graph, type GraphNode, inputsOf, outputsOf, type PackedRows, type ValueId } from '../../ir/graph.js'
import type { Kernel } from '../../ir/kernel.js'
import { dimsIn } from '../../ir/shape.js'
import { visitKernel } from '../../ir/walk.js'
import { packingOf } from '../graph/pack.js'
import { shapeOf } from './compose.js'

type Numbers = Record<string, number>
type Random = () => number

/** Pseudorandom numbers in [0, 1) from a seed (mulberry32). */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const below = (random: Random, limit: number): number => Math.floor(random() * limit)

const sizes = [2, 3, 4, 5, 6, 7]

/** Maximum length of a drawn sequence. */
const longest = 3

/** Number of draws with extents that differ from each other. Later draws are independent, so that one extent may be a multiple of another. */
const differing = 12

/**
 * Extents from 2 to 7. Dimensions differ while there are enough extents, and each is 6 or 7 once in three consecutive draws. Some bodies need one
 * extent to be a multiple of another, such as heads that share keys. They find such extents in the later draws, whose extents also satisfy the
 * facts.
 */
export function drawDims(graph: Graph, nodes: readonly GraphNode[], draw: number, facts: Facts): Numbers {
  const names = new Set<string>()
  for (const id of nodes.flatMap((node) => [...inputsOf(node), ...outputsOf(node)]))
    for (const name of dimsIn(graph.values[id]?.shape ?? [])) names.add(name)
  for (const node of nodes) {
    if (node.kind !== 'op') continue
    for (const value of Object.values(node.attrs))
      if (typeof value === 'object' && 'dim' in value)
        for (const name of dimsIn([{ factor: 1, dims: [value.dim] }])) names.add(name)
  }
  const random = randomFrom(draw)
  if (draw > differing) {
    const dims = Object.fromEntries([...names].map((name) => [name, sizes[below(random, sizes.length)] ?? 2]))
    return constrained(dims, facts, longest)
  }
  const shift = 2 * draw + Math.floor(draw / 3)
  return Object.fromEntries([...names].map((name, at) => [name, sizes[(at + shift) % sizes.length] ?? 2]))
}

/** Attributes of a graph: numbers that suit a scale or a slope, and small counts where an op takes an integer. */
export const drawAttrs = (
  graph: Graph,
  nodes: readonly GraphNode[],
  kernels: ReadonlyMap<string, Kernel>,
  random: Random,
): Numbers => {
  const integers = new Set<string>()
  for (const node of nodes) {
    if (node.kind !== 'op') continue
    for (const [name, value] of Object.entries(node.attrs)) {
      const type = kernels.get(node.op)?.attrs.find((attr) => attr.name === name)?.type
      if (typeof value === 'object' && 'attr' in value && type === 'i32') integers.add(value.attr)
    }
  }
  return Object.fromEntries(graph.attrs.map((name) => [name, integers.has(name) ? 1 + below(random, 4) : 0.25 + random()]))
}

/**
 * Values that nodes read and do not compute.
 * @param dims extents; those of packed rows and of the longest sequence are set to fit the drawn lengths
 * @param packing layout of packed rows
 */
export function drawValues(
  graph: Graph,
  nodes: readonly GraphNode[],
  kernels: ReadonlyMap<string, Kernel>,
  dims: Numbers,
  random: Random,
  packing = packingOf(graph),
): Map<ValueId, Float64Array> {
  const made = new Set(nodes.flatMap(outputsOf))
  const read = [...new Set(nodes.flatMap(inputsOf))].filter((id) => !made.has(id))
  const values = packing === undefined ? new Map<ValueId, Float64Array>() : drawPacking(packing, dims, random)
  for (const id of read) {
    if (values.has(id)) continue
    const size = shapeOf(graph, id, dims).reduce((product, extent) => product * extent, 1)
    const dtype = graph.values[id]?.dtype
    const isInteger = typeof dtype === 'string' && dtypeInfo[dtype].scalar === 'i32'
    const isAscending = isInteger && ascends(nodes, kernels, id)
    // Boundaries of segments lie within every row.
    const limit = isAscending
      ? 1 + Math.min(...Object.values(dims))
      : isInteger
        ? indexLimit(graph, nodes, kernels, id, dims)
        : undefined
    const drawn = Float64Array.from({ length: size }, () =>
      limit !== undefined
        ? below(random, limit)
        : isInteger
          ? 1 + below(random, 4)
          : dtype === 'i8'
            ? below(random, 255) - 127
            : 2 * random() - 1,
    )
    values.set(id, isAscending ? sortedRows(drawn, shapeOf(graph, id, dims).at(-1) ?? 1) : drawn)
  }
  return values
}

/** True if a fact of an op states that elements of an input ascend along its last axis. */
const ascends = (nodes: readonly GraphNode[], kernels: ReadonlyMap<string, Kernel>, id: ValueId): boolean =>
  nodes.some(
    (node) =>
      node.kind === 'op' &&
      Object.entries(node.inputs).some(
        ([param, value]) => value === id && kernels.get(node.op)?.facts?.inputs[param]?.order === 'ascending',
      ),
  )

/** Elements sorted along the last axis. */
function sortedRows(elements: Float64Array, row: number): Float64Array {
  for (let start = 0; start < elements.length; start += row) elements.subarray(start, start + row).sort()
  return elements
}

/** The smallest extent that elements of an integer tensor index. */
function indexLimit(
  graph: Graph,
  nodes: readonly GraphNode[],
  kernels: ReadonlyMap<string, Kernel>,
  id: ValueId,
  dims: Numbers,
): number | undefined {
  const limits: number[] = []
  for (const node of nodes) {
    const kernel = node.kind === 'op' ? kernels.get(node.op) : undefined
    if (node.kind !== 'op' || kernel === undefined) continue
    const params = Object.entries(node.inputs).flatMap(([param, value]) => (value === id ? [param] : []))
    const isIndex = (expr: Expr): boolean => expr.kind === 'load' && params.includes(expr.tensor)
    visitKernel(kernel, (expr) => {
      if (expr.kind === 'load') limits.push(...limitsOf(graph, node, expr, isIndex, dims))
    })
  }
  return limits.length === 0 ? undefined : Math.min(...limits)
}

function limitsOf(
  graph: Graph,
  { inputs }: Extract<GraphNode, { kind: 'op' }>,
  { tensor, indices }: ExprOf<'load'>,
  isIndex: (expr: Expr) => boolean,
  dims: Numbers,
): number[] {
  const shape = shapeOf(graph, inputs[tensor] ?? -1, dims)
  return indices.flatMap((place, axis) => (isIndex(place) ? [shape[axis] ?? 0] : []))
}

/** Layout of a graph's packed rows. Where its nodes do not determine one, later draws take it from the facts of the inputs. */
export function drawnPacking(graph: Graph, { inputs }: Facts, draw: number): PackedRows | undefined {
  const known = packingOf(graph)
  if (known !== undefined || draw <= differing) return known
  const stated = Object.entries(inputs).flatMap(([name, { packed }]) => (packed === undefined ? [] : [{ name, packed }]))
  const [first] = stated
  if (first === undefined) return undefined
  const { batch, rows } = first.packed
  const alike = stated.filter(({ packed }) => packed.batch === batch && packed.rows === rows)
  const seq = alike.flatMap(({ packed }) => packed.seq ?? [])[0]
  const extent = (count: Count | undefined) => ({ factor: 1, dims: typeof count === 'string' ? [count] : [] })
  const ids = alike.map(({ name, packed }) => [packed.role, graph.inputs[name]])
  return { batch: extent(batch), seq: extent(seq), tokens: extent(rows), ...Object.fromEntries(ids) }
}

/** Draws the lengths of sequences together with the positions of their rows. */
function drawPacking(packing: PackedRows, dims: Numbers, random: Random): Map<ValueId, Float64Array> {
  const batch = packing.batch.dims[0] ?? ''
  const lengths = Array.from({ length: dims[batch] ?? 2 }, () => 1 + below(random, longest))
  const starts = lengths.map((_, at) => lengths.slice(0, at).reduce((sum, length) => sum + length, 0))
  const rows = lengths.flatMap((length, sequence) => Array.from({ length }, (_, position) => [sequence, position] as const))
  // One row more than there are tokens, since the extent need not be the exact count.
  dims[packing.tokens.dims[0] ?? ''] = rows.length + 1
  const [seq] = packing.seq.dims
  if (seq !== undefined) dims[seq] = Math.max(dims[seq] ?? 0, ...lengths)
  const data = {
    lengths,
    starts,
    sequences: [...rows.map(([sequence]) => sequence), -1],
    positions: [...rows.map(([, position]) => position), 0],
  }
  return new Map(
    (['lengths', 'starts', 'sequences', 'positions'] as const).flatMap((name) => {
      const id = packing[name]
      return id === undefined ? [] : [[id, Float64Array.from(data[name])] as const]
    }),
  )
}
