/**
 * Two axes as one, where places of the outer one are as far apart as the inner one is long. An access that walks both as one run takes the place on
 * the new axis; another one, as of the mean of a group, is at quotients and remainders of it. Used by the passes that find groups of columns
 * (group_columns.ts, stored_columns.ts).
 *
 *     x[b, i, g, c] / mean[b, g]    g and c < k as t < g * k    x[b, i, t] / mean[b, t / k]
 */
import { call, dim as dimVar, i32, index as indexVar } from '../../ir/build.js'
import { type Expr, type ExprOf, inPlaceOf } from '../../ir/expr.js'
import { getOwn } from '../../ir/get_own.js'
import type { Instance } from '../../ir/instance.js'
import type { Kernel, TensorParam } from '../../ir/kernel.js'
import { rowMajor } from '../../ir/layout.js'
import { multiply, type Polynomial, polynomialOf, samePolynomial, stepOf } from '../../ir/polynomial.js'
import { substitute } from '../../ir/walk.js'
import { offsetOf, sizeOf } from '../access/access.js'
import type { Loop } from '../normalise/normal.js'
import { contains, rewritePaths, substituteDims, usesIndex } from '../normalise/rewrite.js'
import { refuse, tensorIn } from './group_walk.js'

/** Axes that become one. */
export interface Pair {
  readonly outer: Loop
  readonly inner: Loop
  /** Index and dimension of the axis in their place. */
  readonly at: string
  readonly dim: string
}

/** A kernel whose axes become pairs, while its expressions are rewritten. */
export interface Pairing {
  readonly kernel: Kernel
  readonly fixed: Instance['dims']
  /** Dimensions that indices run over, where they run over one. */
  readonly extents: ReadonlyMap<string, string>
  /** Tensors with the axes of pairs. */
  readonly paired: Map<string, TensorParam>
  /** Tensors that are read as they are. */
  readonly plain: Set<string>
}

export const newPairing = (kernel: Kernel, fixed: Instance['dims'], loops: readonly Loop[]): Pairing => ({
  kernel,
  fixed,
  extents: new Map([
    ...kernel.rows.map(({ index, dim }) => [index, dim] as const),
    ...loops.flatMap(({ index, length }) => (length.kind === 'dim' ? [[index, length.name] as const] : [])),
  ]),
  paired: new Map(),
  plain: new Set(),
})

type Place = Pick<ExprOf<'load'>, 'tensor' | 'indices'>

const placeIn = ({ kernel, fixed }: Pick<Pairing, 'kernel' | 'fixed'>, { tensor, indices }: Place): Expr =>
  offsetOf(tensorIn(kernel, tensor), indices, fixed)

/** A polynomial with extents that are known as numbers. */
export const extentPolynomial = (e: Expr, fixed: Instance['dims']): Polynomial =>
  polynomialOf(substituteDims(e, new Map(Object.entries(fixed).map(([name, extent]) => [name, i32(extent)]))))

/** True if an access walks two axes as one run of places. */
export function isRunOf(of: Pick<Pairing, 'kernel' | 'fixed'>, place: Place, outer: string, inner: Loop): boolean {
  const offset = placeIn(of, place)
  if (contains(offset, ({ kind }) => kind === 'local' || kind === 'load')) return false
  const [far, near] = [stepOf(offset, outer), stepOf(offset, inner.index)]
  if (far === undefined || near === undefined || near.size === 0) return false
  return samePolynomial(far, multiply(near, extentPolynomial(inner.length, of.fixed)))
}

/** True if an access is contiguous along an index. */
export function isContiguous(of: Pick<Pairing, 'kernel' | 'fixed'>, place: Place, index: string): boolean {
  const step = stepOf(placeIn(of, place), index)
  return step !== undefined && samePolynomial(step, polynomialOf(i32(1)))
}

/** An expression over the axes of pairs. */
export const onPairs = (e: Expr, pairs: readonly Pair[], pairing: Pairing): Expr =>
  rewritePaths(e, (node, always) => {
    if (node.kind === 'load') return loadOnPairs(node, always, pairs, pairing)
    return node.kind === 'index' ? placesOf(pairs).get(node.name) : undefined
  })

/** Indices of an access over the axes of pairs, of which it walks each as a run. */
export function storedOnPairs(place: Place, pairs: readonly Pair[], pairing: Pairing): readonly Expr[] {
  if (!pairs.every(({ outer, inner }) => isRunOf(pairing, place, outer.index, inner))) refuse()
  return pairedPlace(place, true, pairs, pairing)
}

const placesOf = (pairs: readonly Pair[]): ReadonlyMap<string, Expr> =>
  new Map(
    pairs.flatMap(({ outer, inner, at }) => [
      [outer.index, call('idiv', indexVar(at), inner.length)] as const,
      [inner.index, call('mod', indexVar(at), inner.length)] as const,
    ]),
  )

function loadOnPairs(load: ExprOf<'load'>, always: boolean, pairs: readonly Pair[], pairing: Pairing): Expr | undefined {
  const used = pairs.filter(({ outer, inner }) =>
    load.indices.some((at) => usesIndex(at, outer.index) || usesIndex(at, inner.index)),
  )
  const areRuns = used.length > 0 && used.every(({ outer, inner }) => isRunOf(pairing, load, outer.index, inner))
  if (areRuns) return inPlaceOf(load, { ...load, indices: pairedPlace(load, always, used, pairing) })
  keepPlain(load.tensor, pairing)
  return undefined
}

function keepPlain(tensor: string, { paired, plain }: Pairing): void {
  plain.add(tensor)
  if (paired.has(tensor)) refuse()
}

/** Places of an access on the axes of pairs, of a tensor that has them if its axes allow it, and otherwise of the tensor as it is. */
function pairedPlace(place: Place, always: boolean, pairs: readonly Pair[], pairing: Pairing): readonly Expr[] {
  const made = pairedTensor(place, pairs, pairing)
  if (made === undefined) {
    // An access whose places are on no axis of its own is in bounds only where it is made at any rate.
    if (!always) refuse()
    keepPlain(place.tensor, pairing)
    const run = new Map(
      pairs.flatMap(({ outer, inner, at }) => [[outer.index, i32(0)] as const, [inner.index, indexVar(at)] as const]),
    )
    return place.indices.map((at) => substitute(at, run))
  }
  if (pairing.plain.has(place.tensor)) refuse()
  const known = pairing.paired.get(place.tensor)
  if (known !== undefined && known.dims.join() !== made.tensor.dims.join()) refuse()
  pairing.paired.set(place.tensor, made.tensor)
  return made.indices
}

/** The tensor with the axes of pairs in row-major order; undefined unless each of its axes is that of an index. */
function pairedTensor(
  { tensor: name, indices }: Place,
  pairs: readonly Pair[],
  pairing: Pairing,
): { readonly tensor: TensorParam; readonly indices: readonly Expr[] } | undefined {
  const { kernel, fixed, extents } = pairing
  const tensor = tensorIn(kernel, name)
  const dims: string[] = []
  const places: Expr[] = []
  for (const [i, at] of indices.entries()) {
    const dim = tensor.dims[i]
    if (at.kind !== 'index' || dim === undefined || extents.get(at.name) !== dim) return undefined
    if (pairs.some(({ outer }) => outer.index === at.name)) continue
    const pair = pairs.find(({ inner }) => inner.index === at.name)
    dims.push(pair?.dim ?? dim)
    places.push(pair === undefined ? at : indexVar(pair.at))
  }
  const made = { ...tensor, dims, layout: rowMajor(dims) }
  const extent = new Map(pairs.map((pair) => [pair.dim, extentOfPair(pair, fixed)]))
  const overOp = (e: Expr): Polynomial => polynomialOf(substituteDims(e, extent))
  const first = new Map(
    pairs.flatMap(({ outer, inner, at }) => [[outer.index, i32(0)] as const, [inner.index, indexVar(at)] as const]),
  )
  const isSame =
    samePolynomial(
      overOp(offsetOf(made, places, fixed)),
      polynomialOf(substitute(placeIn(pairing, { tensor: name, indices }), first)),
    ) && samePolynomial(overOp(sizeOf(made, fixed)), polynomialOf(sizeOf(tensor, fixed)))
  return isSame ? { tensor: made, indices: places } : undefined
}

/** Extent of a pair's axis over the dimensions of the op, as numbers where they are fixed. */
function extentOfPair({ outer, inner }: Pair, fixed: Instance['dims']): Expr {
  const numbers = new Map(Object.entries(fixed).map(([name, extent]) => [name, i32(extent)]))
  const [a, b] = [outer.length, inner.length].map((length) => substituteDims(length, numbers))
  if (a === undefined || b === undefined) return refuse()
  return a.kind === 'const' && b.kind === 'const' ? i32(Number(a.value) * Number(b.value)) : call('mul', a, b)
}

/** The kernel with the dimensions of pairs, and with those among them that are numbers as fixed ones. */
export function withPairs(kernel: Kernel, pairs: readonly Pair[], pairing: Pairing): Pick<Instance, 'kernel' | 'dims'> {
  const extents = pairs.map((pair) => [pair.dim, extentOfPair(pair, pairing.fixed)] as const)
  const numbers = extents.flatMap(([dim, extent]) => (extent.kind === 'const' ? [[dim, Number(extent.value)] as const] : []))
  return {
    kernel: {
      ...kernel,
      dims: [...kernel.dims, ...extents.map(([dim]) => dim)],
      computed: { ...kernel.computed, ...Object.fromEntries(extents) },
      tensors: kernel.tensors.map((tensor) => pairing.paired.get(tensor.name) ?? tensor),
    },
    dims: { ...pairing.fixed, ...Object.fromEntries(numbers) },
  }
}

/** The length of a row axis. */
export const lengthOfAxis = (dim: string, fixed: Instance['dims']): Expr => {
  const known = getOwn(fixed, dim)
  return known === undefined ? dimVar(dim) : i32(known)
}
