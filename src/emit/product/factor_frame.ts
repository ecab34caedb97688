/** Shared parts of an operand's source, computed or not: names of parameters, places of its rows, and the fragments of the source. */
import type { TensorParam } from '../../ir/kernel.js'
import type { MatmulKernel } from '../../ir/product.js'
import type { Names } from '../print/names.js'
import { type IndexText, indexTexts } from './frame.js'

/** Names of the parameters of an operand's functions, unique in the file. */
export interface Frame {
  readonly matrix: string
  readonly at: string
  /** The first element of the chunk. */
  readonly along: string
  readonly known: string
  readonly values: string
  readonly kept: string
}

export function frameOf({ fresh }: Names): Frame {
  const [matrix = '', at = '', along = '', known = '', values = '', kept = ''] = 'matrix at along known values kept'
    .split(' ')
    .map(fresh)
  return { matrix, at, along, known, values, kept }
}

/** Number of the emitted operand, with its names. */
export interface Place {
  readonly which: number
  readonly frame: Frame
}

/** The axis of an operand that is not summed over: m for the left one, n for the others. */
export const ownAxis = (kernel: MatmulKernel, which: number): string => (which === 0 ? kernel.m : kernel.n)

export interface FactorText {
  /** Tensors whose chunks are whole and aligned if rows are: contiguous rows of length k. */
  readonly read: readonly string[]
  readonly rows: readonly { readonly name: string; readonly type: 'f32' | 'i32' | 'bool' }[]
  readonly first: string
  readonly chunk: string
  /** Members that give the operand without the scale of its rows; empty if there is no scale. */
  readonly unscaled: string
}

/** Source of the row indices of a program in the functions of an operand: batch axes by the matrix, the operand's own axis by the row there. */
export function placeTexts(
  { rows }: { readonly rows: readonly { readonly index: string; readonly dim: string }[] },
  { batch }: MatmulKernel,
  own: string,
  frame: Frame,
  names: Names,
): ReadonlyMap<string, IndexText> {
  const outer = rows.filter(({ dim }) => dim !== own)
  const inner = rows.filter(({ dim }) => dim === own)
  return new Map([
    ...indexTexts({ rows: outer }, batch, frame.matrix, names),
    ...inner.map(({ index }) => [index, { text: frame.at, dims: [] }] as const),
  ])
}

/** True if a tensor's rows are as long as an axis, and contiguous. */
export const isLong = ({ dims, layout }: Pick<TensorParam, 'dims' | 'layout'>, axis: string): boolean =>
  layout.name === 'row' && dims.at(-1) === axis
