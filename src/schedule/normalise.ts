/**
 * First pass of the schedule: brings a kernel into the one form the later passes work on.
 * - Fixed dimensions become constants.
 * - A kernel that stores across the order it reads in is turned.
 * - A kernel whose outputs are scalars of all row axes gives its innermost axis up as the loop, so that `gelu` over (m, c)
 *   and over a row of m are the same thing.
 * - Constructs of equal length share one loop index, so equal computations have equal texts.
 * - A row element at another place than the loop index is replaced by its computation, unless the row is worth sharing.
 * - Loads that can be read as chunks become rows of their own, which the later passes may keep.
 */
import { dim as dimVar, i32, index as indexVar } from '../ir/build.js'
import { constructOf } from '../ir/constructs/index.js'
import type { Expr } from '../ir/expr.js'
import type { Instance } from '../ir/instance.js'
import type { Kernel, RowAxis, Stmt } from '../ir/kernel.js'
import { introducedNames, mapStmt } from '../ir/walk.js'
import { nameChunkLoads } from './chunk_loads.js'
import {
  addLoadedRow,
  type Context,
  inlineElements,
  isInBounds,
  loopFor,
  overLoop,
  readsScan,
  rowLoop,
  runOf,
} from './elements.js'
import { freshName, type LoopStore, type NormalKernel, type NormalStmt, type Ranking, type Statement } from './normal.js'
import { rewriteDown, substituteDims, substituteIndex, usesIndex } from './rewrite.js'
import { isShared, shareRow } from './shared_rows.js'
import { turn } from './turn.js'

/** Brings an instance's kernel into normal form. The kernel must have passed the IR verifier. */
export function normalise({ kernel: given, dims, types }: Instance): NormalKernel {
  const turned = turn(given, dims)
  const kernel = turned?.kernel ?? given
  const fixed = new Map(Object.entries(dims).map(([name, extent]) => [name, i32(extent)]))
  const body = kernel.body.map((s) => mapStmt(s, (e) => substituteDims(e, fixed)))
  const { axes, statements } =
    isPointwise(body) && kernel.rows.length > 0 ? loopOverLastAxis(kernel, body, fixed) : { axes: kernel.rows, statements: body }

  const context: Context = {
    kernel,
    fixed: dims,
    types,
    loops: new Map(),
    elementIndex: axes === kernel.rows ? undefined : kernel.rows.at(-1)?.index,
    extents: new Map(axes.map(({ index, dim }) => [index, fixed.get(dim) ?? dimVar(dim)])),
    lets: new Map(),
    rows: new Map(),
    shared: new Map(),
    taken: namesOf(kernel),
  }
  const normal = statements.flatMap((s) =>
    isShared(s, statements, context.elementIndex) ? shareRow(s, context) : normaliseStatement(s, context),
  )
  const loops = [...new Set(normal.flatMap((s) => ('loop' in s ? [s.loop] : [])))]
  const elementwise =
    loops.length === 1 && normal.every((s) => s.kind === 'let' || (s.kind === 'loopStore' && !readsScan(s.value, context.rows)))
  return {
    elementwise,
    axes,
    across: turned?.across,
    rows: context.rows,
    shared: context.shared,
    loops,
    statements: normal,
    inBounds: (load) => isInBounds(load, context),
    taken: context.taken,
  }
}

/** All results are scalars of the row axes and nothing walks over a row: rows are computed where they are read. */
const isPointwise = (body: readonly Stmt[]): boolean =>
  body.every((s) => {
    const { walk } = constructOf(s).traits
    return walk === 'none' || walk === 'where read'
  })

/** Turns the innermost row axis into the loop: lets that depend on it become rows, stores become loop stores. */
function loopOverLastAxis(
  kernel: Kernel,
  body: readonly Stmt[],
  fixed: ReadonlyMap<string, Expr>,
): { axes: readonly RowAxis[]; statements: readonly Statement[] } {
  const axis = kernel.rows.at(-1)
  if (axis === undefined) throw new Error(`internal: ${kernel.name} has no row axis`)
  const { index } = axis
  const length = fixed.get(axis.dim) ?? dimVar(axis.dim)
  const perElement = new Set<string>()
  const rewriteLocals = (e: Expr): Expr =>
    rewriteDown(e, (node) =>
      node.kind === 'local' && perElement.has(node.name)
        ? { kind: 'element', type: node.type, row: node.name, index: indexVar(index) }
        : undefined,
    )
  const statements = body.map((s): Statement => {
    const rewritten = mapStmt(s, rewriteLocals)
    if (rewritten.kind === 'store') return { ...rewritten, kind: 'writtenStore', index, length }
    if (rewritten.kind !== 'let' || !usesIndex(rewritten.value, index)) return rewritten
    perElement.add(rewritten.name)
    return { ...rewritten, kind: 'row', index, length }
  })
  return { axes: kernel.rows.slice(0, -1), statements }
}

function normaliseStatement(s: Statement, context: Context): NormalStmt[] {
  switch (s.kind) {
    case 'let': {
      const value = inlineElements(s.value, undefined, context)
      context.lets.set(s.name, value)
      return [{ ...s, value }]
    }
    case 'store': {
      const inline = (e: Expr): Expr => inlineElements(e, undefined, context)
      const when = s.when === undefined ? {} : { when: inline(s.when) }
      return [{ ...s, indices: s.indices.map(inline), value: inline(s.value), ...when }]
    }
    case 'row': {
      const loop = rowLoop(s, context)
      const value = overLoop(s.value, s.index, loop, context)
      const run = value.kind === 'load' ? runOf(value, loop, context) : undefined
      if (value.kind === 'load' && run !== undefined) addLoadedRow(s.name, value, { loop, run }, context)
      else
        context.rows.set(s.name, {
          kind: 'computed',
          name: s.name,
          type: s.type,
          loop,
          value: nameChunkLoads(value, loop, context),
        })
      return []
    }
    case 'scan': {
      const loop = rowLoop(s, context)
      const value = nameChunkLoads(overLoop(s.value, s.index, loop, context), loop, context)
      context.rows.set(s.name, { kind: 'scanned', name: s.name, type: s.type, monoid: s.monoid, loop, value })
      return []
    }
    case 'reduce': {
      const loop = loopFor(s.index, s.length, context)
      const value = nameChunkLoads(overLoop(s.value, s.index, loop, context), loop, context)
      return [{ kind: 'reduce', name: s.name, type: s.type, monoid: s.monoid, loop, value }]
    }
    case 'threshold': {
      const loop = loopFor(s.index, s.length, context)
      const element = (e: Expr): Expr => inlineElements(substituteIndex(e, s.index, indexVar(loop.index)), undefined, context)
      const target = inlineElements(s.target, undefined, context)
      return [{ kind: 'threshold', name: s.name, target, loop, key: element(s.key), value: element(s.value) }]
    }
    case 'histogram': {
      const loop = loopFor(s.index, s.length, context)
      const value = nameChunkLoads(overLoop(s.value, s.index, loop, context), loop, context)
      const bin = freshName('bin', context.taken)
      const [bins, ...rows] = [s.bins, ...s.rows].map((e) => inlineElements(e, undefined, context))
      const indices = [...rows, indexVar(bin)]
      return [{ kind: 'histogram', tensor: s.tensor, indices, bin, bins: bins ?? s.bins, loop, value }]
    }
    case 'topK': {
      if (s.count.kind !== 'const') throw new Error(`internal: the number of elements ${s.name} ranks is not fixed`)
      const loop = loopFor(s.index, s.length, context)
      const value = nameChunkLoads(overLoop(s.value, s.index, loop, context), loop, context)
      const { name, indices } = s
      const ranking: Ranking = { kind: 'topK', name, indices, count: Number(s.count.value), loop, value }
      for (const row of [name, indices]) context.shared.set(row, ranking)
      return [ranking]
    }
    case 'storeRow':
      return normaliseStatement({ ...s, kind: 'writtenStore', indices: [...s.rows, indexVar(s.index)] }, context)
    case 'writtenStore': {
      const loop = loopFor(s.index, s.length, context)
      const inline = (e: Expr): Expr => inlineElements(substituteIndex(e, s.index, indexVar(loop.index)), undefined, context)
      const indices = s.indices.map(inline)
      const value = nameChunkLoads(overLoop(s.value, s.index, loop, context), loop, context, s.when === undefined)
      const run = runOf({ kind: 'load', type: value.type, tensor: s.tensor, indices }, loop, context)
      const store: LoopStore = { kind: 'loopStore', tensor: s.tensor, indices, loop, value, run }
      if (s.when === undefined) return [store]
      const when = inline(s.when)
      // A chunk is stored whole or not at all.
      return [{ ...store, when, run: usesIndex(when, loop.index) ? undefined : run }]
    }
  }
}

const namesOf = (kernel: Kernel): Set<string> =>
  new Set([
    ...kernel.dims,
    ...kernel.attrs.map((a) => a.name),
    ...kernel.tensors.map((t) => t.name),
    ...kernel.rows.map((r) => r.index),
    ...kernel.body.flatMap(introducedNames),
  ])
