/**
 * Binds a graph node to the kernel instance that runs it: looks the instance up by its storage types and puts buffers,
 * extents and attributes into the order its launcher expects. Runs once per node when a program is built.
 */
import type { KernelEntry, Manifest } from '../emit/manifest/manifest.js'
import { environmentError, usageError } from '../errors.js'
import type { DType } from '../ir/dtype.js'
import { fixedByFacts } from '../ir/facts/solve.js'
import type { AttrValue, Graph, NodeOf, ValueId } from '../ir/graph.js'
import { nodesAtAnyRows } from '../ir/graph_rows.js'
import { instanceKey, resolveDType } from '../ir/instance.js'
import { kernelName } from '../ir/op_name.js'
import { evaluateDim, evaluateExtent } from '../ir/shape.js'
import type { GraphApplication } from './application.js'

/** Dimensions, storage types and attributes of a graph's parameters. */
export interface Binding {
  readonly dims: Readonly<Record<string, number>>
  readonly types: Readonly<Record<string, DType>>
  readonly attrs: Readonly<Record<string, number>>
}

export interface ValueInfo {
  readonly dtype: DType
  readonly shape: readonly number[]
  readonly layout: string
}

export interface BoundKernel {
  readonly entry: KernelEntry
  /** Graph values in the launcher's buffer order. */
  readonly values: readonly ValueId[]
  readonly dims: readonly number[]
  readonly attrs: readonly number[]
}

/** Binding of an application's graph in a program of the given sizes and types. @throws usage `graph.dim` */
export function bindingOf({ attrs, dims = {}, types = {} }: GraphApplication, program: Omit<Binding, 'attrs'>): Binding {
  const extents = Object.entries(dims).map(([dim, extent]) => [dim, evaluateExtent(extent, program.dims)] as const)
  const stored = Object.entries(types).map(([param, type]) => [param, resolveDType(type, program.types)] as const)
  return {
    dims: { ...program.dims, ...Object.fromEntries(extents) },
    types: { ...program.types, ...Object.fromEntries(stored) },
    attrs,
  }
}

/** Storage type, extents and layout of a graph value under a binding. @throws usage `graph.dim` if a dimension has no value */
export function valueInfo(graph: Graph, id: ValueId, binding: Binding): ValueInfo {
  const value = graph.values[id]
  if (value === undefined) throw new Error(`internal: graph ${graph.name} has no value ${id}`)
  return {
    dtype: resolveDType(value.dtype, binding.types),
    shape: value.shape.map((extent) => evaluateExtent(extent, binding.dims)),
    layout: value.layout,
  }
}

const instancesOf = ({ op }: NodeOf<'op'>, types: Binding['types'], { kernels }: Manifest): KernelEntry[] =>
  kernels.filter((entry) => entry.op === kernelName(op) && sameTypes(entry.types, types))

/** Keys of the kernels that a graph may launch under these types, whatever its number of rows and its sizes. */
export function keysAtAnyRows(graph: Graph, { types }: Binding, manifest: Manifest): readonly string[] {
  return nodesAtAnyRows(graph).flatMap((node) => {
    if (node.kind !== 'op') return []
    const stored = Object.entries(node.types).map(([param, ref]) => [param, resolveDType(ref, types)] as const)
    return instancesOf(node, Object.fromEntries(stored), manifest).map(({ key }) => key)
  })
}

/**
 * @throws environment `bind.kernel` when no instance has the node's storage types; usage `bind.extent` when none has its extents,
 * `bind.*` when node and kernel disagree about a buffer, an extent or an attribute
 */
export function bindKernel(graph: Graph, node: NodeOf<'op'>, binding: Binding, manifest: Manifest): BoundKernel {
  const types = Object.fromEntries(Object.entries(node.types).map(([param, ref]) => [param, resolveDType(ref, binding.types)]))
  const where = `${graph.name}/${node.name}`
  const values: Readonly<Record<string, ValueId>> = { ...node.inputs, ...node.outputs }
  const op = kernelName(node.op)
  const candidates = instancesOf(node, types, manifest).sort(
    (a, b) => Object.keys(b.fixedDims).length - Object.keys(a.fixedDims).length,
  )
  const unfit = new Map<string, { readonly extent: number | undefined; readonly allowed: readonly number[] }>()
  for (const entry of candidates) {
    const fixed = bindDims(where, entry, (name) => valueInfo(graph, bufferValue(where, entry, values, name), binding))
    const attrs = entry.attrs.map(({ name, default: fallback }) => bindAttr(where, name, node.attrs[name] ?? fallback, binding))
    const dims = { ...fixed, ...dimsByFacts(entry, fixed, attrs) }
    expectMultiples(where, entry, dims)
    // The instance with the most fixed dimensions that fit comes first.
    const missed = Object.entries(entry.fixedDims).find(([name, extent]) => dims[name] !== extent)
    if (missed !== undefined) {
      unfit.set(missed[0], { extent: dims[missed[0]], allowed: [...(unfit.get(missed[0])?.allowed ?? []), missed[1]] })
      continue
    }
    return {
      entry,
      values: entry.buffers.map(({ name }) => bufferValue(where, entry, values, name)),
      dims: entry.dims.map((name) => dims[name] ?? missingDim(where, entry, name)),
      attrs,
    }
  }
  for (const [name, { extent, allowed }] of unfit) {
    const list = [...new Set(allowed)].sort((a, b) => a - b).join(', ')
    throw usageError('bind.extent', `${where}: dimension ${name} is ${extent}, kernels of ${op} are compiled for ${list}`, {
      hint: `use the next larger of ${list} for ${name}`,
    })
  }
  const known = manifest.kernels.filter((entry) => entry.op === op).map((entry) => entry.key)
  throw environmentError('bind.kernel', `${where}: there is no kernel ${instanceKey(op, types)}`, {
    hint: known.length > 0 ? `instances of ${op}: ${known.join(', ')}` : `no instance of ${op} was generated: run heddle gen`,
  })
}

const sameTypes = (a: Readonly<Record<string, DType>>, b: Readonly<Record<string, DType>>): boolean =>
  Object.keys(a).length === Object.keys(b).length && Object.entries(a).every(([param, dtype]) => b[param] === dtype)

function bufferValue(where: string, entry: KernelEntry, values: Readonly<Record<string, ValueId>>, name: string): ValueId {
  const id = values[name]
  if (id === undefined) throw usageError('bind.buffer', `${where}: kernel ${entry.key} needs buffer ${name}, the node has none`)
  return id
}

function missingDim(where: string, entry: KernelEntry, name: string): never {
  throw usageError('bind.dim', `${where}: no buffer of kernel ${entry.key} fixes dimension ${name}`)
}

/** Infers the kernel's dimensions from the extents of its buffers, and checks storage types and layouts. */
function bindDims(where: string, entry: KernelEntry, info: (name: string) => ValueInfo): Record<string, number> {
  const dims: Record<string, number> = {}
  for (const buffer of entry.buffers) {
    const { dtype, shape, layout } = info(buffer.name)
    if (dtype !== buffer.dtype || layout !== buffer.layout || shape.length !== buffer.dims.length) {
      throw usageError(
        'bind.buffer',
        `${where}: ${buffer.name} is ${dtype} [${shape.join(', ')}] in layout ${layout}, ` +
          `kernel ${entry.key} takes ${buffer.dtype} (${buffer.dims.join(' ')}) in layout ${buffer.layout}`,
      )
    }
    for (const [i, name] of buffer.dims.entries()) {
      const extent = shape[i] ?? 0
      const bound = dims[name] ?? extent
      if (bound !== extent) {
        throw usageError('bind.dim', `${where}: dimension ${name} of ${buffer.name} is ${extent}, but ${bound} elsewhere`)
      }
      dims[name] = extent
    }
  }
  return dims
}

/** Dimensions that no buffer has, solved from the facts of the kernel. */
function dimsByFacts(
  { dims, facts, attrs }: KernelEntry,
  known: Readonly<Record<string, number>>,
  values: readonly number[],
): Record<string, number> {
  const open = dims.filter((dim) => known[dim] === undefined)
  if (open.length === 0) return {}
  const numbers = Object.fromEntries(attrs.map(({ name }, i) => [name, values[i] ?? 0]))
  return fixedByFacts(facts?.dims ?? {}, { ...numbers, ...known }, open)
}

/** @throws usage `bind.extent` for a dimension that is not the multiple its facts state */
function expectMultiples(where: string, { op, facts }: KernelEntry, dims: Readonly<Record<string, number>>): void {
  for (const [dim, { multipleOf = 1 }] of Object.entries(facts?.dims ?? {})) {
    const extent = dims[dim] ?? 0
    if (extent % multipleOf === 0) continue
    throw usageError(
      'bind.extent',
      `${where}: dimension ${dim} of ${op}: expected a multiple of ${multipleOf}, by its facts, got ${extent}`,
      {
        hint: `the next multiple is ${Math.ceil(extent / multipleOf) * multipleOf}`,
      },
    )
  }
}

function bindAttr(where: string, name: string, value: AttrValue, binding: Binding): number {
  const number =
    typeof value === 'number' ? value : 'dim' in value ? evaluateDim(value.dim, binding.dims) : binding.attrs[value.attr]
  if (number === undefined || !Number.isFinite(number)) {
    throw usageError('bind.attr', `${where}: attribute ${name} has no finite value`, {
      hint: `attributes given: ${Object.keys(binding.attrs).join(', ') || 'none'}`,
    })
  }
  return number
}
