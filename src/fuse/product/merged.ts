/**
 * Merges the parts of an axis in an epilogue. Ops after a matmul may read its rows or columns in parts, such as heads and elements of a head: a view
 * splits them. A main loop has one index for each. So an epilogue over parts becomes one over the matmul's own axes, in which a part is a digit of
 * the index. Tensors in which all parts of an axis are adjacent are indexed along the axis; in others a part is found by division.
 */
import { call, dim, i32, index } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import type { Kernel, Stmt, StmtOf, TensorParam } from '../../ir/kernel.js'
import { rowMajor } from '../../ir/layout.js'
import { freshName } from '../../ir/names.js'
import { multiplyExtents, type Shape } from '../../ir/shape.js'
import { freeNames, mapStmt, rewrite, substitute, visitKernel } from '../../ir/walk.js'
import { runsBetween } from '../graph/edit.js'
import type { Derived } from '../rows/derive.js'
import { equalExprs } from '../space/positions.js'
import { readsOthers } from './other_elements.js'

/** An axis of the matmul that the epilogue reads in parts, outermost first. */
interface Split {
  readonly axis: string
  readonly parts: readonly string[]
  readonly isColumn: boolean
}

/** Reason why an epilogue over parts cannot become one over the matmul's axes. */
export class NotMerged extends Error {}

/**
 * @param derived the epilogue, without row values
 * @param accumulators its tensors that stand for matmuls
 * @param product the shape of the matmuls in the graph
 * @returns the epilogue unchanged if it reads no axis in parts
 * @throws NotMerged
 */
export function mergeParts(derived: Derived, accumulators: readonly string[], product: Shape): Derived {
  const splits = splitsOf(derived, accumulators, product)
  if (splits.length === 0) return derived
  const merge = new Merge(derived, accumulators, splits)
  return merge.run()
}

function splitsOf({ kernel, inputs }: Derived, accumulators: readonly string[], product: Shape): readonly Split[] {
  const seen = inputs.find(({ param }) => param === accumulators[0])
  const { dims = [] } = kernel.tensors.find(({ name }) => name === accumulators[0]) ?? {}
  const runs = seen === undefined ? undefined : runsBetween(product, seen.shape)
  if (runs === undefined) return []
  const taken = new Set([...kernel.dims, ...kernel.tensors.map(({ name }) => name), ...kernel.attrs.map(({ name }) => name)])
  let at = 0
  return runs.flatMap((run, place) => {
    const parts = dims.slice(at, at + run)
    at += run
    return run === 1 ? [] : [{ axis: freshName(parts.join('_'), taken), parts, isColumn: place === runs.length - 1 }]
  })
}

class Merge {
  readonly #derived: Derived
  readonly #accumulators: readonly string[]
  readonly #splits: readonly Split[]
  readonly #rowOf: ReadonlyMap<string, string>

  constructor(derived: Derived, accumulators: readonly string[], splits: readonly Split[]) {
    this.#derived = derived
    this.#accumulators = accumulators
    this.#splits = splits
    this.#rowOf = new Map(derived.kernel.rows.map((row) => [row.dim, row.index]))
  }

  run(): Derived {
    const { kernel, inputs, outputs } = this.#derived
    const inner = this.#withoutLets(kernel)
    const whole = new Map(inner.tensors.map((tensor) => [tensor.name, this.#wholeOf(inner, tensor)] as const))
    const tensors = inner.tensors.map((tensor) => this.#merged(tensor, whole.get(tensor.name) ?? []))
    const known = new Set(tensors.flatMap(({ dims }) => dims))
    const rows = this.#splits.filter(({ isColumn }) => !isColumn)
    const split = new Set(this.#splits.flatMap(({ parts }) => parts))
    const first = (dimension: string): Split | undefined => rows.find(({ parts }) => parts[0] === dimension)
    const body = inner.body.map((stmt) => {
      const digits = this.#digits(stmt.kind === 'storeRow' ? stmt.index : undefined, known)
      return mapStmt(this.#along(stmt, whole), (expr) => digits(this.#loads(expr, stmt, whole)))
    })
    const bound = ({ param, shape, ...rest }: (typeof inputs)[number]) => ({
      ...rest,
      param,
      shape: this.#shape(inner, param, shape, whole.get(param) ?? []),
    })
    return {
      ...this.#derived,
      kernel: {
        ...inner,
        tensors,
        dims: [...new Set([...this.#splits.map(({ axis }) => axis), ...inner.dims.filter((each) => known.has(each))])],
        rows: inner.rows.flatMap((row) => {
          const whole = first(row.dim)
          if (whole !== undefined) return [{ index: indexOf(whole), dim: whole.axis }]
          return split.has(row.dim) ? [] : [row]
        }),
        body,
      },
      inputs: inputs.map(bound),
      outputs: outputs.map(bound),
    }
  }

  /** Inlines scalars of a row that depend on a part of the columns: a main loop has scalars of whole rows only. */
  #withoutLets(kernel: Kernel): Kernel {
    const inColumns = new Set(
      this.#splits.flatMap(({ isColumn, parts }) => (isColumn ? parts.flatMap((part) => this.#rowOf.get(part) ?? []) : [])),
    )
    const values = new Map<string, Expr>()
    const body = kernel.body.flatMap((stmt) => {
      const made = mapStmt(stmt, (expr) => substitute(expr, values))
      if (made.kind !== 'let' || ![...freeNames(made.value)].some((name) => inColumns.has(name))) return [made]
      values.set(made.name, made.value)
      return []
    })
    return { ...kernel, body }
  }

  /** Axes whose parts are adjacent in a tensor, and are always read and stored at one index of the axis. */
  #wholeOf(kernel: Kernel, tensor: TensorParam): readonly Split[] {
    const isProduct = this.#accumulators.includes(tensor.name)
    return this.#splits.filter((split) => {
      const at = placeOf(tensor, split)
      const fits = at >= 0 && (isProduct || tensor.layout.name === 'row') && this.#isAlong(kernel, tensor.name, split, at)
      if (fits) return true
      if (isProduct) throw new NotMerged(readsOthers(kernel, tensor.name, this.#shapeOf(tensor.name)))
      if (tensor.access === 'out' && split.isColumn)
        throw new NotMerged(
          `${tensor.name} does not have the columns of the matmul adjacent to each other: "${split.parts.join(' ')}" of "${tensor.dims.join(' ')}"`,
        )
      return false
    })
  }

  #shapeOf(tensor: string): Shape {
    return this.#derived.inputs.find(({ param }) => param === tensor)?.shape ?? []
  }

  /** True if every access to a tensor has the parts of one index along an axis. */
  #isAlong(kernel: Kernel, tensor: string, { parts, isColumn }: Split, at: number): boolean {
    return kernel.body.every((stmt) => {
      const column = stmt.kind === 'storeRow' ? stmt.index : undefined
      const wanted = parts.map((part, i) => (isColumn && i === parts.length - 1 ? column : this.#rowOf.get(part)))
      const isPlace = (indices: readonly Expr[]): boolean =>
        wanted.every((name, i) => name !== undefined && equalExprs(indices[at + i], index(name)))
      let all = stmt.kind !== 'storeRow' || stmt.tensor !== tensor || isPlace([...stmt.rows, index(stmt.index)])
      visitKernel({ ...kernel, body: [stmt] }, (expr) => {
        if (expr.kind === 'load' && expr.tensor === tensor) all &&= isPlace(expr.indices)
      })
      return all
    })
  }

  #merged(tensor: TensorParam, whole: readonly Split[]): TensorParam {
    if (whole.length === 0) return tensor
    const dims = joined(tensor, tensor.dims, whole, ({ axis }) => axis)
    return { ...tensor, dims, layout: rowMajor(dims) }
  }

  #shape({ tensors }: Kernel, param: string, shape: Shape, whole: readonly Split[]): Shape {
    const tensor = tensors.find(({ name }) => name === param)
    return tensor === undefined ? shape : joined(tensor, shape, whole, (_, extents) => multiplyExtents(extents))
  }

  /** Loads of merged tensors, at the index of each axis. */
  #loads(expr: Expr, stmt: Stmt, whole: ReadonlyMap<string, readonly Split[]>): Expr {
    return rewrite(expr, (node) => {
      const tensor = node.kind === 'load' ? this.#derived.kernel.tensors.find(({ name }) => name === node.tensor) : undefined
      if (node.kind !== 'load' || tensor === undefined) return node
      const column = stmt.kind === 'storeRow' ? stmt.index : ''
      const indices = joined(tensor, node.indices, whole.get(node.tensor) ?? [], (split) => wholeIndex(split, column))
      return { ...node, indices }
    })
  }

  /** A store along the columns, at the rows of a merged tensor. */
  #along(stmt: Stmt, whole: ReadonlyMap<string, readonly Split[]>): Stmt {
    if (stmt.kind !== 'storeRow') return stmt
    const tensor = this.#derived.kernel.tensors.find(({ name }) => name === stmt.tensor)
    const column = this.#splits.find(({ isColumn }) => isColumn)
    const all: readonly Expr[] = [...stmt.rows, index(stmt.index)]
    const places =
      tensor === undefined ? all : joined(tensor, all, whole.get(stmt.tensor) ?? [], (split) => wholeIndex(split, stmt.index))
    const made: StmtOf<'storeRow'> = { ...stmt, rows: places.slice(0, -1) }
    return column === undefined ? made : { ...made, length: dim(column.axis), index: wholeName(column, stmt.index) }
  }

  /** Replaces parts by digits of the index of their axis, wherever an expression still has them. */
  #digits(column: string | undefined, known: ReadonlySet<string>): (expr: Expr) => Expr {
    const found = new Map<string, () => Expr>()
    for (const split of this.#splits)
      split.parts.forEach((part, at) => {
        const name = split.isColumn && at === split.parts.length - 1 ? column : this.#rowOf.get(part)
        if (name !== undefined) found.set(name, () => digit(split, at, wholeIndex(split, column ?? ''), known))
      })
    return (expr) => rewrite(expr, (node) => (node.kind === 'index' ? (found.get(node.name)?.() ?? node) : node))
  }
}

const indexOf = ({ axis }: Split): string => `i_${axis}`
/** Index along a whole axis: a row's, or that of a statement's loop over columns, under a name of its own. */
const wholeName = (split: Split, column: string): string => (split.isColumn ? `${column}_${split.axis}` : indexOf(split))
const wholeIndex = (split: Split, column: string): Expr => index(wholeName(split, column))

/** First of a tensor's axes that are all parts of an axis, next to each other; -1 if there are none. */
const placeOf = ({ dims }: TensorParam, { parts }: Split): number =>
  dims.findIndex((_, at) => parts.every((part, i) => dims[at + i] === part))

/** Entries of a tensor's axes, with one for each merged axis. */
function joined<T>(
  tensor: TensorParam,
  of: readonly T[],
  whole: readonly Split[],
  made: (split: Split, parts: readonly T[]) => T,
): T[] {
  const starts = new Map(whole.map((split) => [placeOf(tensor, split), split]))
  const result: T[] = []
  for (let at = 0; at < of.length; ) {
    const split = starts.get(at)
    const own = of.slice(at, at + (split?.parts.length ?? 1))
    result.push(...(split === undefined ? own : [made(split, own)]))
    at += own.length
  }
  return result
}

/**
 * Index along one part of an axis. Extents are those of tensors. Where a tensor has the outermost part alone, the extent of the inner parts is
 * that of the axis divided by it, rounded up: no index is then outside of the tensor, at any size.
 */
function digit({ axis, parts }: Split, at: number, whole: Expr, known: ReadonlySet<string>): Expr {
  const inside = parts.slice(at + 1)
  const below = extentOf(inside)
  const above = inside.length === 0 ? whole : call('idiv', whole, below)
  const own = parts[at] ?? ''
  if (at === 0) return above
  if (!known.has(own)) throw new NotMerged(`no tensor of the epilogue has ${own}, by which "${parts.join(' ')}" is split`)
  return call('mod', above, dim(own))

  function extentOf(dims: readonly string[]): Expr {
    if (dims.every((each) => known.has(each)))
      return dims.map(dim).reduce<Expr>((a, b) => (a.kind === 'const' ? b : call('mul', a, b)), i32(1))
    const [first = ''] = parts
    if (at !== 0 || !known.has(first))
      throw new NotMerged(`no tensor of the epilogue has all of "${dims.join(' ')}", by which "${parts.join(' ')}" is split`)
    const outer = dim(first)
    return call('idiv', call('sub', call('add', dim(axis), outer), i32(1)), outer)
  }
}
