/** Loads and stores of a column program, and those among them that move chunks of columns. */
import { index as indexVar } from '../ir/build.js'
import { type Expr, type ExprOf, inPlaceOf } from '../ir/expr.js'
import { type Instance, resolveDType } from '../ir/instance.js'
import type { Kernel, RowAxis, StmtOf, TensorParam } from '../ir/kernel.js'
import { introducedNames } from '../ir/walk.js'
import { type Access, classify, offsetOf } from './access.js'
import type { ColumnLoad, ColumnStore } from './column_program.js'
import { freshName, type Loop } from './normal.js'
import { contains, rewritePaths, sameExpr, usesIndex } from './rewrite.js'

/** Columns that are worth a chunk. */
export const fewestColumns = 4

type Place = Pick<ExprOf<'load'>, 'tensor' | 'indices'>

export interface ColumnAccess {
  /** Stride of an access along an index; undefined for an unknown tensor. */
  readonly along: (place: Place, index: string) => Access | undefined
  /** A value with its loads of columns, which differ from row to row, as elements of chunks, which join `loads`. */
  readonly chunked: (value: Expr, row: string, loads: ColumnLoad[]) => Expr
  /** True if such a value reads rows at places that columns do not share. */
  readonly isScattered: () => boolean
  readonly stored: (store: StmtOf<'store'>, vec: number) => ColumnStore
}

/** @param loop over the rows that are reduced */
export function columnAccess(
  kernel: Kernel,
  column: RowAxis,
  loop: Loop,
  { dims, types }: Pick<Instance, 'dims' | 'types'>,
): ColumnAccess {
  const tensor = (name: string): TensorParam | undefined => kernel.tensors.find((t) => t.name === name)
  const along = (place: Place, index: string) => {
    const found = tensor(place.tensor)
    return found === undefined ? undefined : classify(offsetOf(found, place.indices, dims), index)
  }
  const extents = new Map([
    ...kernel.rows.map((row) => [row.index, row.dim] as const),
    ...(loop.length.kind === 'dim' ? [[loop.index, loop.length.name] as const] : []),
  ])
  /** True for a load that is in bounds unconditionally: each index runs over exactly its dimension. */
  const inBounds = (load: Place): boolean =>
    load.indices.every((at, i) => at.kind === 'index' && extents.get(at.name) === tensor(load.tensor)?.dims[i])
  /** True if rows are contiguous, so that all chunks are full if the number of columns is a multiple of their width. */
  const isWhole = (place: Place): boolean => {
    const found = tensor(place.tensor)
    const last = place.indices.at(-1)
    if (found?.layout.name !== 'row' || last?.kind !== 'index' || last.name !== column.index) return false
    return found.dims.at(-1) === column.dim && place.indices.slice(0, -1).every((at) => !usesIndex(at, column.index))
  }
  const taken = new Set([...kernel.dims, ...kernel.tensors.map(({ name }) => name), ...kernel.attrs.map(({ name }) => name)])
  for (const s of kernel.body) for (const name of introducedNames(s)) taken.add(name)
  for (const row of kernel.rows) taken.add(row.index)

  const loadOf = (name: string, load: ExprOf<'load'>): ColumnLoad => {
    const found = tensor(load.tensor)
    if (found === undefined) throw new Error(`internal: ${kernel.name} has no tensor ${load.tensor}`)
    return { name, load, dtype: resolveDType(found.dtype, types), isWhole: isWhole(load) }
  }
  let isScattered = false
  const chunked = (value: Expr, row: string, loads: ColumnLoad[]): Expr =>
    rewritePaths(value, (node, always) => {
      if (node.kind !== 'load') return undefined
      const moves = along(node, column.index)
      if (moves?.kind === 'gather' || moves === undefined) isScattered ||= usesIndex(node, row)
      const bound = contains(node, ({ kind }) => kind === 'local' || kind === 'element' || kind === 'fold')
      if (moves?.kind !== 'contiguous' || moves.run % fewestColumns > 0 || bound || !(always || inBounds(node))) return undefined
      if (!usesIndex(node, row)) return undefined
      const same = loads.find((each) => sameExpr(each.load, node))
      const name = same?.name ?? freshName(`${node.tensor}_${column.index}`, taken)
      if (same === undefined) loads.push(loadOf(name, node))
      return inPlaceOf(node, { kind: 'element', type: node.type, row: name, index: indexVar(column.index) })
    })
  const stored = ({ tensor: name, indices, value }: StmtOf<'store'>, vec: number): ColumnStore => {
    const moves = along({ tensor: name, indices }, column.index)
    const inChunks = moves?.kind === 'contiguous' && (moves.run % vec === 0 || !Number.isFinite(moves.run))
    return { tensor: name, indices, value, inChunks, isWhole: isWhole({ tensor: name, indices }) }
  }
  return { along, chunked, isScattered: () => isScattered, stored }
}
