/**
 * A short axis, written out. Elements that lie beside each other in one tensor are often far apart, or the same, in another: the parts of complex
 * numbers, the channels of pixels, the pixels of a shuffle or an upsampling. A thread that computes all elements of the short axis loads and stores
 * chunks along another one, and moves what is interleaved in groups (src/schedule/access/interleaved.ts).
 *
 *     for w, j < 2: y[w, j] = x[j, w]        becomes        for w: y[w, 0] = x[0, w], y[w, 1] = x[1, w]
 */
import { i32 } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import { getOwn } from '../../ir/get_own.js'
import type { Instance } from '../../ir/instance.js'
import type { Kernel, RowAxis, Stmt, StmtOf } from '../../ir/kernel.js'
import { isUpdating } from '../../ir/update.js'
import { substitute } from '../../ir/walk.js'
import { mostMembers } from '../access/interleaved.js'
import { elementsOf, mergeAxes, storedValues } from '../normalise/merge_axes.js'
import { contains, loadsOf, usesIndex } from '../normalise/rewrite.js'
import { mostLoads, simplified } from '../windows/written_out.js'

/** A kernel whose short axes are numbers, and those among their extents that facts state. */
export interface WrittenAxis {
  readonly instance: Instance
  readonly stated: Readonly<Record<string, number>>
}

/** Extent of an innermost axis of which facts state none: that of pairs. */
const likely = 2

type Store = StmtOf<'store'>

/** The elements of a kernel. */
interface Elements {
  readonly kernel: Kernel
  readonly stores: readonly Store[]
  readonly values: readonly Expr[]
}

/** The kernel with a short axis written out, or with short extents as numbers; undefined if it is not elementwise, or if nothing is short. */
export function shortAxis(instance: Instance): WrittenAxis | undefined {
  const { kernel: given, dims } = instance
  if (isUpdating(given) || given.computed !== undefined) return undefined
  const kernel = elementsOf(given)
  if (kernel === undefined || kernel.rows.length === 0) return undefined
  if (kernel.rows.some(({ also, times }) => (also ?? times) !== undefined)) return undefined
  const stores = kernel.body.filter((s): s is Store => s.kind === 'store')
  const elements = { kernel, stores, values: storedValues(kernel) }
  if (elements.values.some((value) => contains(value, ({ kind }) => kind === 'fold'))) return undefined
  const extents = { ...dims, ...shortExtents(elements, dims) }
  const axis = [...kernel.rows].reverse().find(({ index, dim }) => isShort(extents[dim]) && isLastIn(elements, index))
  const written = axis === undefined || kernel.rows.length < 2 ? kernel : writtenOut(elements, axis, extents[axis.dim] ?? 0)
  if (loadsOf(storedValues(written)).length > mostLoads) return undefined
  const stated = Object.fromEntries(Object.entries(extents).filter(([dim]) => !(dim in dims)))
  if (written === kernel && Object.keys(stated).length === 0) return undefined
  const merged = mergeAxes({ kernel: written, dims: extents }) ?? written
  return { instance: { ...instance, kernel: merged, dims: extents }, stated }
}

const isShort = (extent: number | undefined): boolean => extent !== undefined && extent >= 2 && extent <= mostMembers

/** Short extents that facts state of the innermost axes of tensors, and that of the innermost axis of the results if it is likely. */
function shortExtents({ kernel, stores, values }: Elements, dims: Instance['dims']): Readonly<Record<string, number>> {
  const innermost = new Set(kernel.tensors.flatMap((tensor) => tensor.dims.slice(-1)))
  const stated = [...innermost].flatMap((dim) => {
    const equal = kernel.facts?.dims?.[dim]?.equal
    return typeof equal === 'number' && isShort(equal) && getOwn(dims, dim) === undefined ? [[dim, equal] as const] : []
  })
  const [next, last] = kernel.rows.slice(-2)
  if (next === undefined || last === undefined || kernel.rows.length < 3) return Object.fromEntries(stated)
  const isUnknown = getOwn(dims, last.dim) === undefined && kernel.facts?.dims?.[last.dim]?.equal === undefined
  const isAlong = ({ index }: RowAxis): boolean => loadsOf(values).some(({ indices }) => endsIn(indices, index))
  const isLikely = isUnknown && stores.every(({ indices }) => endsIn(indices, last.index)) && isAlong(next) && !isAlong(last)
  return Object.fromEntries([...stated, ...(isLikely ? [[last.dim, likely] as const] : [])])
}

const endsIn = (indices: readonly Expr[], index: string): boolean => indices.slice(-1).some((at) => usesIndex(at, index))

/** True if the last index of all stores, or of a load, depends on an axis. */
const isLastIn = ({ stores, values }: Elements, index: string): boolean =>
  stores.every(({ indices }) => endsIn(indices, index)) || loadsOf(values).some(({ indices }) => endsIn(indices, index))

/** The kernel with a store for each element of an axis. */
function writtenOut({ kernel, stores, values }: Elements, axis: RowAxis, extent: number): Kernel {
  const at = (e: Expr, place: number): Expr => simplified(substitute(e, new Map([[axis.index, i32(place)]])))
  const body = stores.flatMap((s, i): readonly Stmt[] =>
    Array.from({ length: extent }, (_, place): Stmt => {
      const indices = s.indices.map((e) => at(e, place))
      return { ...s, indices, value: at(values[i] ?? s.value, place) }
    }),
  )
  return { ...kernel, rows: kernel.rows.filter((each) => each !== axis), body, storedPlaces: extent }
}
