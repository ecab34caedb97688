/**
 * Several places of an axis per point. Windows of neighbouring places overlap, so that a thread that stores several of them along an axis makes each
 * load once. A load is made where the conditions of the body allow it, and where the first place that needs it exists.
 *
 *     y[i, j] = x[i, j] + x[i + 1, j]    for i of n / 4: y[4 * i, j] = x0[j] + x1[j], y[4 * i + 1, j] = x1[j] + x2[j], ...
 */
import { call, constant, dim as dimVar, i32, index as indexVar } from '../../ir/build.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import { getOwn } from '../../ir/get_own.js'
import type { Instance } from '../../ir/instance.js'
import type { Kernel, RowAxis, Stmt, StmtOf } from '../../ir/kernel.js'
import { substitute } from '../../ir/walk.js'
import { freshName } from '../normalise/normal.js'
import { contains, hashOf, loadsOf, type Path, rewriteWhere, substituteIndex, usesIndex } from '../normalise/rewrite.js'
import { takenNames } from '../normalise/taken_names.js'
import { lengthOfAxis } from '../rows/paired_axes.js'
import { mostLoads, simplified } from './written_out.js'

type Store = StmtOf<'store'>

/** Places of a point, the most first. */
const counts = [4, 2, 1]
/** Part of the loads that has to remain at most, of chunks: fewer threads hide less latency. Single loads share the division of a point at least. */
const mostOfLoads = 0.75
/** Loads of a point whose places share none. */
const mostAlone = 24

/** A load of several places, with the conditions of the body and the first place that makes it. */
interface Shared {
  readonly load: ExprOf<'load'>
  readonly path: readonly Expr[]
  readonly from: number
  readonly name: string
}

/** A point's places along an axis. */
interface Places {
  readonly axis: RowAxis
  readonly count: number
  /** Values of each store, of each place. */
  readonly values: readonly (readonly Expr[])[]
}

/** Loads along the last axis: single ones or chunks, of places that share some, or in spans, which hold all that lie beside each other. */
export type Loads = 'any' | 'shared' | 'in spans'

/** The kernel with several places per point; undefined where a reduction has a loop, or where no places share loads that have to be. */
export function severalPlaces(
  kernel: Kernel,
  stores: readonly Store[],
  values: readonly Expr[],
  last: RowAxis,
  fixed: Instance['dims'],
  loads: Loads = 'any',
): Pick<Instance, 'kernel' | 'dims'> | undefined {
  if (values.some((value) => contains(value, ({ kind }) => kind === 'fold'))) return undefined
  const taken = takenNames(kernel)
  const around = kernel.rows.filter((axis) => axis !== last)
  for (const { count, most } of [
    ...counts.map((count) => ({ count, most: mostOfLoads })),
    ...counts.flatMap((count) => (loads === 'any' ? [{ count, most: 1 }] : [])),
  ])
    for (const axis of [...around].reverse()) {
      const point = freshName(axis.index, new Set(taken))
      const places = { axis, count, values: values.map((value) => placesOf(value, axis.index, point, count, last)) }
      const one = places.values.flatMap(([first]) => (first === undefined ? [] : [first]))
      const [alone, all] = [distinctLoads([one], last, loads), distinctLoads(places.values, last, loads)]
      const many = loadsOf(places.values.flat()).length
      if (many <= 2 * mostLoads && all <= most * count * alone && (most < 1 || all <= mostAlone))
        return kernelOf(kernel, stores, places, last, fixed, taken)
    }
  return undefined
}

/** The value at each place of a point. */
const placesOf = (value: Expr, axis: string, point: string, count: number, last: RowAxis): readonly Expr[] =>
  Array.from({ length: count }, (_, place) =>
    simplified(substitute(value, new Map([[axis, call('add', call('mul', indexVar(point), i32(count)), i32(place))]])), last),
  )

const keyOf = (load: Expr, path: readonly Expr[]): string => [load, ...path].map(hashOf).join(' ')

/** Number of different loads along the last axis. Others are the same for neighbouring threads. */
function distinctLoads(values: readonly (readonly Expr[])[], last: RowAxis, loads: Loads): number {
  const keys = new Set<string>()
  for (const value of values.flat())
    eachLoad(value, (load, path = []) => {
      if (!usesIndex(load, last.index)) return undefined
      if (loads !== 'in spans') keys.add(keyOf(load, path))
      else
        keys.add(
          keyOf({ ...load, indices: load.indices.map((at) => (usesIndex(at, last.index) ? indexVar(last.index) : at)) }, []),
        )
      return undefined
    })
  return keys.size
}

const eachLoad = (value: Expr, f: (load: ExprOf<'load'>, path: Path) => Expr | undefined): Expr =>
  rewriteWhere(
    value,
    () => true,
    (node, path) => (node.kind === 'load' ? f(node, path) : undefined),
  )

/** True for a load whose places are axes of the point over its tensor's dimensions, or numbers within them: it may be made at any rate. */
function isInBounds(
  { tensor: name, indices }: ExprOf<'load'>,
  kernel: Kernel,
  places: RowAxis,
  fixed: Instance['dims'],
): boolean {
  const tensor = kernel.tensors.find((each) => each.name === name)
  return indices.every((at, i) => {
    const dim = tensor?.dims[i] ?? ''
    if (at.kind === 'const') return Number(at.value) >= 0 && Number(at.value) < (getOwn(fixed, dim) ?? 0)
    return at.kind === 'index' && kernel.rows.some((axis) => axis !== places && axis.index === at.name && axis.dim === dim)
  })
}

/** Names of a kernel whose points store several places. */
interface Points {
  readonly last: RowAxis
  readonly taken: Set<string>
  /** Place of a point along the axis. */
  readonly at: (place: number) => Expr
  /** Condition of the existence of a place. */
  readonly exists: (place: number) => Expr
  readonly pathOf: (load: ExprOf<'load'>, path: Path) => Path
}

function kernelOf(
  kernel: Kernel,
  stores: readonly Store[],
  { axis, count, values }: Places,
  last: RowAxis,
  fixed: Instance['dims'],
  taken: Set<string>,
): Pick<Instance, 'kernel' | 'dims'> {
  const point = freshName(axis.index, taken)
  const dim = freshName(`${axis.dim}/${count}`, taken)
  const first = call('mul', indexVar(point), i32(count))
  const points: Points = {
    last,
    taken,
    at: (place) => call('add', first, i32(place)),
    exists: (place) => call('lt', i32(place), call('sub', lengthOfAxis(axis.dim, fixed), first)),
    pathOf: (load, path) => (isInBounds(load, kernel, axis, fixed) ? [] : path),
  }
  const shared = sharedLoads(values, points)
  const rows = [...shared.values()].map((each) => rowOf(each, points))
  const made = stores.flatMap((s, i) =>
    (values[i] ?? []).map((value, place) => storeOf(s, axis, { value, place }, shared, points)),
  )
  const known = getOwn(fixed, axis.dim)
  const extent = call('idiv', call('add', dimVar(axis.dim), i32(count - 1)), i32(count))
  return {
    kernel: {
      ...kernel,
      dims: [...kernel.dims, dim],
      computed: { ...kernel.computed, [dim]: extent },
      rows: kernel.rows.flatMap((each) => (each === last ? [] : each === axis ? [{ index: point, dim }] : [each])),
      body: [...rows, ...made],
      storedPlaces: count,
    },
    dims: known === undefined ? fixed : { ...fixed, [dim]: Math.ceil(known / count) },
  }
}

/** Loads along the last axis of all places, by their hashes and those of their conditions. */
function sharedLoads(values: Places['values'], { last, taken, pathOf }: Points): ReadonlyMap<string, Shared> {
  const shared = new Map<string, Shared>()
  const isShared = (load: ExprOf<'load'>): boolean =>
    usesIndex(load, last.index) && !contains(load, ({ kind }) => kind === 'local' || kind === 'element')
  for (const of of values)
    for (const [place, value] of of.entries())
      eachLoad(value, (load, given) => {
        const path = pathOf(load, given)
        const key = keyOf(load, path ?? [])
        const from = path !== given ? 0 : place
        if (path === undefined || !isShared(load)) return undefined
        const known = shared.get(key)
        const name = known?.name ?? freshName(`${load.tensor}_${last.index}`, taken)
        shared.set(key, { load, path, from: Math.min(from, known?.from ?? from), name })
        return undefined
      })
  return shared
}

/** A shared load as a row, zero where its conditions do not hold. */
function rowOf({ load, path, from, name }: Shared, { last, taken, exists }: Points): Stmt {
  const index = freshName(last.index, taken)
  const [first, ...more] = from === 0 ? path : [exists(from), ...path]
  const when = first === undefined ? undefined : more.reduce((all, next) => call('and', all, next), first)
  const value = when === undefined ? load : call('select', when, load, constant(load.type, 0))
  const written = substituteIndex(value, last.index, indexVar(index))
  return { kind: 'row', name, type: load.type, length: dimVar(last.dim), index, value: written }
}

const isZero = (e: Expr | undefined): boolean => e?.kind === 'const' && (e.value === 0 || e.value === false)

/** The store of one place, which reads shared loads as rows. */
function storeOf(
  s: Store,
  axis: RowAxis,
  { value, place }: { readonly value: Expr; readonly place: number },
  shared: ReadonlyMap<string, Shared>,
  { last, taken, at, exists, pathOf }: Points,
): Stmt {
  const index = freshName(last.index, taken)
  const elementOf = (load: ExprOf<'load'>, path: Path): Expr | undefined => {
    const row = path === undefined ? undefined : shared.get(keyOf(load, path))
    return row && { kind: 'element', type: load.type, row: row.name, index: indexVar(last.index) }
  }
  const read = rewriteWhere(
    value,
    () => true,
    (node, given) => {
      if (node.kind === 'load') return elementOf(node, pathOf(node, given))
      const [condition, load, other] = node.kind === 'call' && node.fn === 'select' ? node.args : []
      if (given === undefined || condition === undefined || load?.kind !== 'load' || !isZero(other)) return undefined
      // A row is zero where its conditions do not hold.
      const path = [...given, condition]
      return pathOf(load, path) === path ? elementOf(load, path) : undefined
    },
  )
  return {
    kind: 'storeRow',
    tensor: s.tensor,
    rows: s.indices.slice(0, -1).map((e) => simplified(substitute(e, new Map([[axis.index, at(place)]])), last)),
    length: dimVar(last.dim),
    index,
    value: substituteIndex(read, last.index, indexVar(index)),
    ...(place === 0 ? {} : { when: exists(place) }),
  }
}
