/** Accesses of a walk: how often each is made, and the sectors of memory that neighbouring threads move for it. */
import { call, i32, index } from '../ir/build.js'
import { type DType, dtypeInfo } from '../ir/dtype.js'
import { emptyEnv, evaluateExpr } from '../ir/evaluate.js'
import type { Expr } from '../ir/expr.js'
import { type Instance, resolveDType } from '../ir/instance.js'
import type { TensorParam } from '../ir/kernel.js'
import { freeNames, operands, rewrite } from '../ir/walk.js'
import { offsetOf } from '../schedule/access/access.js'
import { singleShare } from './chunk_forms.js'
import { iterations } from './extents.js'
import { numberAt, type Sizes } from './sizes.js'
import { type Counted, product, type Walk, type WalkAccess } from './walk.js'

/** Smallest transfer of memory in bytes. */
export const sectorBytes = 32
const lanes = 32
/** Iterations of a serial loop for which a thread finds the rest of a sector in the memory of its multiprocessor. */
const mostSteps = 16

/** An access with its numbers for the sizes of a price. */
export interface Access {
  readonly does: 'read' | 'written'
  readonly tensor: TensorParam
  readonly dtype: DType
  readonly indices: readonly Expr[]
  /** Loops that it depends on, with all between them and the outermost. */
  readonly loops: readonly Counted[]
  /** Elements that its threads access, as often as they do. */
  readonly elements: number
  /** Elements of the tensor. */
  readonly size: number
  /** Indices of the loops of threads. */
  readonly axes: ReadonlySet<string>
  /** Different elements: one for each combination of the indices that it depends on, at most all of the tensor. */
  readonly different: number
  /** Bytes of sectors that a warp moves for each element that its lanes access. */
  readonly moved: number
  /** Smallest number of bytes of sectors for each different element, in whatever order they are accessed. */
  readonly least: number
  readonly vec: number
}

/** All accesses of a walk: those made for each element, and loads in its values. */
export function accessesOf(walk: Walk, instance: Instance, sizes: Sizes): readonly Access[] {
  const found: Access[] = []
  const add = (does: Access['does'], access: WalkAccess, inner: readonly Counted[]): void => {
    const tensor = instance.kernel.tensors.find(({ name }) => name === access.tensor)
    if (tensor !== undefined) found.push(accessOf(does, tensor, access, inner, walk, instance, sizes))
  }
  for (const read of walk.reads) add('read', read, [])
  for (const store of walk.stores) add('written', store, [])
  const seen = new Set<Expr>()
  const search = (expr: Expr, inner: readonly Counted[]): void => {
    if (seen.has(expr)) return
    seen.add(expr)
    if (expr.kind === 'load') add('read', { tensor: expr.tensor, indices: expr.indices, vec: 1 }, inner)
    const within = expr.kind === 'fold' ? [...inner, { index: expr.index, count: iterations(expr.length, sizes) }] : inner
    for (const operand of operands(expr)) search(operand, within)
  }
  for (const value of [...walk.values, ...[...walk.reads, ...walk.stores].flatMap(({ indices }) => indices)]) search(value, [])
  return found
}

function accessOf(
  does: Access['does'],
  tensor: TensorParam,
  { indices, vec, form, factor = 1, order = [] }: WalkAccess,
  inner: readonly Counted[],
  walk: Walk,
  { types }: Instance,
  sizes: Sizes,
): Access {
  const dtype = resolveDType(tensor.dtype, types)
  const { bytes } = dtypeInfo[dtype]
  const all = [...walk.loops, ...inner]
  const offset = offsetOf(
    tensor,
    indices.map((at) => inlined(at, walk)),
    {},
  )
  const names = freeNames(offset)
  const isData = [...names].some((name) => !all.some(({ index }) => index === name))
  const used = all.filter(({ index }) => names.has(index))
  const last = all.findLastIndex(({ index }) => names.has(index))
  // A thread has what does not change in its own innermost loops in a register.
  const threads = walk.loops.filter(({ index }) => !walk.serial.includes(index)).length
  const loops = all.slice(0, Math.max(last + 1, Math.min(threads, all.length)))
  const size = tensor.dims.reduce((total, dim) => total * (sizes.dims[dim] ?? 1), 1)
  const spread = isData ? product(walk.loops) * product(used.filter((each) => inner.includes(each))) : product(used)
  const own = order.length > 0 ? { order, vec } : walk
  const serial = [...inner, ...walk.loops.filter(({ index }) => walk.serial.includes(index))].filter(({ index }) =>
    names.has(index),
  )
  const place = placeAt(offset, sizes, all)
  return {
    does,
    tensor,
    dtype,
    indices,
    loops,
    elements: product(loops) * factor,
    size,
    axes: walk.axes,
    different: Math.min(size, spread * factor),
    moved:
      does === 'written' && form === 'single'
        ? singleShare * Math.min(sectorBytes, vec * bytes)
        : movedBytes(place, own.order, own.vec, serial.at(0), bytes) / factor,
    least: Math.min(
      sectorBytes / factor,
      ...used.map((each) => movedBytes(place, [each, ...used.filter((other) => other !== each)], 1, undefined, bytes) / factor),
      ...(used.length === 0 ? [bytes] : []),
    ),
    vec: vec * factor,
  }
}

/** An index with elements of rows that the walk computes written out. */
const inlined = (at: Expr, { rows }: Pick<Walk, 'rows'>): Expr =>
  rewrite(at, (node) => (node.kind === 'element' ? (rows?.get(node.row) ?? node) : node))

type Place = (at: ReadonlyMap<string, number>) => number

/** Distance in elements that separates values which only data knows. */
const scattered = 4099

/** Offset of an element by the values of loop indices. A place that data states differs wherever the indices do by which it is looked up. */
function placeAt(offset: Expr, sizes: Sizes, loops: readonly Counted[]): Place {
  const known = new Set(loops.map(({ index }) => index))
  const plain = rewrite(offset, (node) => {
    if (node.kind === 'index') return known.has(node.name) ? node : zero
    if (node.kind === 'local') return zero
    if (node.kind === 'load' || node.kind === 'element' || node.kind === 'fold')
      return [...freeNames(node)]
        .filter((name) => known.has(name))
        .reduce<Expr>((sum, name) => call('add', sum, call('mul', index(name), i32(scattered))), zero)
    return node.kind === 'dim' && sizes.dims[node.name] === undefined ? zero : node
  })
  const fixed = numberAt(plain, sizes)
  if (fixed !== undefined) return () => fixed
  const values = new Map(loops.map((loop) => [loop.index, 0]))
  const env = { ...emptyEnv(sizes.dims), attrs: sizes.attrs, values }
  return (at) => {
    for (const loop of loops) values.set(loop.index, at.get(loop.index) ?? 0)
    return Number(evaluateExpr(plain, env))
  }
}

const zero: Expr = i32(0)

/**
 * Bytes of sectors that the lanes of a warp move for each element, over the first steps of a serial loop.
 * @param order loops of neighbouring threads, the fastest first, of which a thread takes `vec` elements
 */
function movedBytes(place: Place, order: readonly Counted[], vec: number, serial: Counted | undefined, bytes: number): number {
  const sectors = new Set<number>()
  const steps = Math.max(1, Math.min(mostSteps, serial?.count ?? 1))
  let elements = 0
  const at = new Map<string, number>()
  const all = Math.max(1, product(order))
  for (let element = 0; element < Math.min(lanes * vec, all); element++) {
    let rest = element
    for (const { index, count } of order) {
      at.set(index, rest % Math.max(1, count))
      rest = Math.floor(rest / Math.max(1, count))
    }
    for (let step = 0; step < steps; step++) {
      if (serial !== undefined) at.set(serial.index, step)
      sectors.add(Math.floor((place(at) * bytes) / sectorBytes))
      elements++
    }
  }
  // A warp whose lanes are not all busy, and one that reads one element, move a part of a sector for each lane.
  return Math.max((sectors.size * sectorBytes) / Math.max(elements, lanes), 0)
}
