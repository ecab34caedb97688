/** What the texts of a factor share, computed or not: names of parameters, places of its rows, and what a factor's text consists of. */
import type { TensorParam } from '../../ir/kernel.js'
import type { MatmulKernel } from '../../ir/product.js'
import type { Names } from '../names.js'
import { type IndexText, indexTexts } from './frame.js'

/** Names of the parameters of a factor's functions, which nothing else in the file has. */
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

/** Which factor is written, under which names. */
export interface Place {
  readonly which: number
  readonly frame: Frame
}

/** The axis of a factor that is not summed over: m of the left one, n of the others. */
export const ownAxis = (kernel: MatmulKernel, which: number): string => (which === 0 ? kernel.m : kernel.n)

export interface FactorText {
  /** Tensors whose chunks are whole and aligned where rows are: k long, one behind the other. */
  readonly read: readonly string[]
  readonly rows: readonly { readonly name: string; readonly type: 'f32' | 'i32' | 'bool' }[]
  readonly first: string
  readonly chunk: string
  /** Members that give the factor without what its rows are scaled by, if anything. */
  readonly unscaled: string
}

/** What a program calls its rows in the functions of a factor: batch axes by the matrix, its own axis by the row there. */
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

/** True if a tensor's rows are as long as an axis, and lie one behind the other. */
export const isLong = ({ dims, layout }: Pick<TensorParam, 'dims' | 'layout'>, axis: string): boolean =>
  layout.name === 'row' && dims.at(-1) === axis
