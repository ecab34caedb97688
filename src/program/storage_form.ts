/** Storage form of a value. A plan determines it, and adjacent graphs must agree on it. */

import type { Graph, PackedRows, ValueId } from '../ir/graph.js'
import type { DTypeRef } from '../ir/kernel.js'
import { printType } from '../ir/kernel.js'
import type { Application, RaggedAxis } from '../ir/program.js'
import { multiplyExtents, printExtent, type Shape, sameExtent } from '../ir/shape.js'
import { substitute, substituteType } from '../lang/program/match.js'

export interface StorageForm {
  /** `packed`: rows of tokens are consecutive, without padding between sequences. */
  readonly rows: 'padded' | 'packed'
  /** Index of the ragged axis of packed rows in the program's list; undefined with padding. */
  readonly ragged: number | undefined
  readonly store: DTypeRef
  readonly layout: string
}

export const sameForm = (a: StorageForm, b: StorageForm): boolean => printForm(a) === printForm(b) && a.ragged === b.ragged

/** `packed i8 in layout col32` */
export const printForm = ({ rows, store, layout }: StorageForm): string =>
  `${rows} ${printType(store)}${layout === 'row' ? '' : ` in layout ${layout}`}`

const floats: readonly string[] = ['f32', 'f16', 'bf16']

/** True for a float type, and for a type parameter, which is one of them. */
export const isFloat = (dtype: DTypeRef): boolean => typeof dtype !== 'string' || floats.includes(dtype)

/** Index of the ragged axis of a packed graph's rows in the program's list; -1 if the program has no such axis. */
export function raggedOf({ batch, seq }: PackedRows, { dims }: Application, axes: readonly RaggedAxis[]): number {
  return axes.findIndex((axis) => sameExtent(substitute(batch, dims), axis.batch) && sameExtent(substitute(seq, dims), axis.seq))
}

/** Storage form of an input or output of a planned graph. */
export function formOf(graph: Graph, id: ValueId, application: Application, axes: readonly RaggedAxis[]): StorageForm {
  const value = graph.values[id]
  if (value === undefined) throw new Error(`internal: graph ${graph.name} has no value ${id}`)
  const { packing } = graph
  const [first] = value.shape
  const packed = packing !== undefined && first !== undefined && sameExtent(first, packing.tokens)
  return {
    rows: packed ? 'packed' : 'padded',
    ragged: packed ? raggedOf(packing, application, axes) : undefined,
    store: substituteType(value.dtype, application.types),
    layout: value.layout,
  }
}

/** Rows of a ragged axis with padding. */
export const paddedRows = ({ batch, seq }: RaggedAxis) => multiplyExtents([batch, seq])

/** The shape in which a value is stored. @param shape with padding */
export function storedShape(shape: Shape, { rows, ragged }: StorageForm, axes: readonly RaggedAxis[]): Shape {
  const axis = ragged === undefined ? undefined : axes[ragged]
  if (rows === 'padded' || axis === undefined) return shape
  return [{ factor: 1, dims: [axis.tokens] }, ...shape.slice(1)]
}

/** True if the first axis is a ragged axis with its padding: batch x seq rows. */
export const hasPaddedRows = (shape: Shape, axis: RaggedAxis): boolean =>
  shape[0] !== undefined && printExtent(shape[0]) === printExtent(paddedRows(axis))
