/** Loads and stores of programs whose iterations threads divide, and those among them that move chunks. */
import { index as indexVar } from '../../ir/build.js'
import { type Expr, type ExprOf, inPlaceOf } from '../../ir/expr.js'
import { type Instance, resolveDType } from '../../ir/instance.js'
import type { Kernel, StmtOf, TensorParam } from '../../ir/kernel.js'
import { introducedNames } from '../../ir/walk.js'
import type { ChunkLoad, ColumnStore } from '../divided/divided_program.js'
import { freshName, type Loop } from '../normalise/normal.js'
import { rewritePaths, sameExpr, usesIndex } from '../normalise/rewrite.js'
import { type Access, classify, offsetOf } from './access.js'
import { multiplesOf } from './multiples.js'

type Place = Pick<ExprOf<'load'>, 'tensor' | 'indices'>

export interface ChunkAccess {
  /** Stride of an access along an index. */
  readonly along: (place: Place, index: string) => Access
  /** A value with loads of chunks as elements of rows, which join `loads`: those that `may` accepts, which sees every load. */
  readonly chunked: (value: Expr, loads: ChunkLoad[], may: (load: ExprOf<'load'>, moves: Access) => boolean) => Expr
  readonly stored: (store: StmtOf<'store'>, vec: number) => ColumnStore
}

/** @param chunk the index along which chunks lie, and its dimension if it runs over one; @param loops over what is reduced */
export function chunkAccess(
  kernel: Kernel,
  chunk: { readonly index: string; readonly dim: string | undefined },
  loops: readonly Loop[],
  { dims, types }: Pick<Instance, 'dims' | 'types'>,
): ChunkAccess {
  const tensorOf = (name: string): TensorParam => {
    const found = kernel.tensors.find((t) => t.name === name)
    if (found === undefined) throw new Error(`internal: ${kernel.name} has no tensor ${name}`)
    return found
  }
  const multiples = multiplesOf(kernel)
  const along = ({ tensor, indices }: Place, index: string): Access =>
    classify(offsetOf(tensorOf(tensor), indices, dims), index, multiples)
  const extents = new Map([
    ...kernel.rows.map((row) => [row.index, row.dim] as const),
    ...loops.flatMap(({ index, length }) => (length.kind === 'dim' ? [[index, length.name] as const] : [])),
  ])
  /** True for a load that is in bounds unconditionally: each index runs over exactly its dimension. */
  const inBounds = ({ tensor, indices }: Place): boolean =>
    indices.every((at, i) => at.kind === 'index' && extents.get(at.name) === tensorOf(tensor).dims[i])
  /** True if rows are contiguous, so that all chunks are full if their number of elements is a multiple of the width. */
  const isWhole = ({ tensor, indices }: Place): boolean => {
    const { layout, dims: own } = tensorOf(tensor)
    const last = indices.at(-1)
    if (layout.name !== 'row' || last?.kind !== 'index' || last.name !== chunk.index || chunk.dim === undefined) return false
    return own.at(-1) === chunk.dim && indices.slice(0, -1).every((at) => !usesIndex(at, chunk.index))
  }
  const taken = new Set([...kernel.dims, ...kernel.tensors.map(({ name }) => name), ...kernel.attrs.map(({ name }) => name)])
  for (const s of kernel.body) for (const name of introducedNames(s)) taken.add(name)
  for (const { index } of [...kernel.rows, ...loops]) taken.add(index)

  const chunked: ChunkAccess['chunked'] = (value, loads, may) =>
    rewritePaths(value, (node, always) => {
      if (node.kind !== 'load') return undefined
      const moves = along(node, chunk.index)
      if (!may(node, moves) || moves.kind !== 'contiguous' || !(always || inBounds(node))) return undefined
      const same = loads.find((each) => sameExpr(each.load, node))
      const name = same?.name ?? freshName(`${node.tensor}_${chunk.index}`, taken)
      const dtype = resolveDType(tensorOf(node.tensor).dtype, types)
      if (same === undefined) loads.push({ name, load: node, dtype, isWhole: isWhole(node) })
      return inPlaceOf(node, { kind: 'element', type: node.type, row: name, index: indexVar(chunk.index) })
    })
  const stored: ChunkAccess['stored'] = ({ tensor, indices, value }, vec) => {
    const moves = along({ tensor, indices }, chunk.index)
    const inChunks = moves.kind === 'contiguous' && (moves.run % vec === 0 || !Number.isFinite(moves.run))
    return { tensor, indices, value, inChunks, isWhole: isWhole({ tensor, indices }) }
  }
  return { along, chunked, stored }
}
