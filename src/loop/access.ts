/**
 * Offsets of accesses to tensors, as expressions. A row in one run has an offset of its first element, computed once per row, to which the index of
 * a chunk is added. Used by lowering, by passes, and where offsets are printed.
 */
import { i32 } from '../ir/build.js'
import type { Expr } from '../ir/expr.js'
import type { TensorParam } from '../ir/kernel.js'
import { offsetOf } from '../schedule/access/access.js'
import type { Multiples } from '../schedule/access/multiples.js'
import type { Interleaved } from '../schedule/normalise/normal.js'
import { type Pass, statementsOf } from '../schedule/normalise/passes.js'
import { contains, dropZeros, isZero, substituteIndex } from '../schedule/normalise/rewrite.js'
import type { Access } from './ir.js'

/** Tensors that accesses name, and the extents fixed at compile time. */
export interface Tensors {
  readonly tensors: readonly TensorParam[]
  readonly fixed: Readonly<Record<string, number>>
  /** Divisors of dimensions that facts state; none by default. */
  readonly multiples?: Multiples
}

export function tensorOf(name: string, { tensors }: Pick<Tensors, 'tensors'>): TensorParam {
  const tensor = tensors.find((t) => t.name === name)
  if (tensor === undefined) throw new Error(`internal: no tensor ${name}`)
  return tensor
}

/** Offset of an element, in elements. */
export const offsetAt = (tensor: string, indices: readonly Expr[], of: Tensors): Expr =>
  dropZeros(offsetOf(tensorOf(tensor, of), indices, of.fixed))

/** Place of a chunk access. */
export type Place = Pick<Access, 'tensor' | 'indices' | 'index'>

/** Offset of a row of consecutive elements: its value at loop index 0; undefined if that is element 0 of the tensor. */
export function startOf({ tensor, indices, index }: Place, of: Tensors): Expr | undefined {
  const start = dropZeros(substituteIndex(offsetOf(tensorOf(tensor, of), indices, of.fixed), index, i32(0)))
  return isZero(start) ? undefined : start
}

/** True if a row is one run of consecutive elements. */
export const isOneRun = ({ run }: Pick<Access, 'run'>): boolean => run === Number.POSITIVE_INFINITY

/** True if another row of the kernel reads other elements. */
export function differsByRow(place: Place, of: Tensors): boolean {
  const start = startOf(place, of)
  return start !== undefined && contains(start, (e) => ['index', 'local', 'load'].includes(e.kind))
}

/** Indices of the first of the elements that are moved for an index. */
const firstOf = ({ interleaved }: { readonly interleaved?: Interleaved }): { readonly indices?: readonly Expr[] } =>
  interleaved === undefined ? {} : { indices: interleaved.first }

/** The accesses of a pass in chunks. */
export function chunkAccesses(pass: Pass): Omit<Access, 'whole'>[] {
  const { loop, rows } = pass
  const stores = statementsOf(pass, 'loopStore')
  const loads = rows.flatMap((row) => (row.kind === 'loaded' ? [{ ...row.load, run: row.run, ...firstOf(row) }] : []))
  const chunks = stores.flatMap((s) => (s.run === undefined ? [] : [{ ...s, run: s.run, ...firstOf(s) }]))
  return [...loads, ...chunks].map(({ tensor, indices, run }) => ({ tensor, indices, run, index: loop.index }))
}
