/**
 * A kernel cut in two: reductions of one level in a kernel of their own, whose results are scratch tensors, and the rest, which reads them there. Used by
 * the passes that choose what is computed in front (split_launch.ts, long_rows.ts).
 */
import { index as indexVar } from '../../ir/build.js'
import { constructOf } from '../../ir/constructs/index.js'
import type { ScalarType } from '../../ir/dtype.js'
import type { Expr } from '../../ir/expr.js'
import type { Kernel, RowAxis, Stmt, StmtOf, TensorParam } from '../../ir/kernel.js'
import { rowMajor } from '../../ir/layout.js'
import { freeNames, mapStmt, rewrite, stmtExprs, visitKernel } from '../../ir/walk.js'
import { freshName } from '../normalise/normal.js'
import { takenNames } from '../normalise/taken_names.js'

/** Two kernels in place of one: `rest` reads the outputs of `first`. */
export interface SplitKernel {
  readonly first: Kernel
  readonly rest: Kernel
}

/** Statements that a launch in front may repeat: all that store nothing. */
export const isPlain = (s: Stmt): boolean => constructOf(s).traits.makes !== 'output'

/** A reduction to move. */
interface Moved {
  readonly stmt: Stmt
  /** Indices of the row axes that it depends on. */
  readonly axes: ReadonlySet<string>
  /** Statements that it reads, itself included, in order. */
  readonly slice: readonly Stmt[]
}

/**
 * Moves reductions of one level into a kernel of their own.
 * @param stored stores to move with them, and what those follow from
 */
export function divide(
  kernel: Kernel,
  moved: readonly Moved[],
  part: number,
  stored: ReadonlySet<Stmt> = new Set(),
): SplitKernel {
  const axes = kernel.rows.filter(({ index }) => moved[0]?.axes.has(index))
  const gone = new Set<Stmt>([...moved.map(({ stmt }) => stmt), ...[...stored].filter(({ kind }) => kind === 'store')])
  const left = withoutUnread(kernel.body.filter((stmt) => !gone.has(stmt)))
  const read = new Set(left.flatMap(stmtExprs).flatMap((e) => [...freeNames(e)]))
  const values = moved.flatMap(({ stmt }) => constructOf(stmt).defines(stmt)).filter(({ name }) => read.has(name))
  const taken = takenNames(kernel)
  const scratch = values.map(
    ({ name, type }): Scratch => ({ value: name, type, tensor: scratchTensor(freshName(`${name}_once`, taken), type, axes) }),
  )
  const needed = new Set([...moved.flatMap(({ slice }) => slice), ...stored])
  return { first: frontKernel(kernel, needed, axes, scratch, part), rest: restKernel(kernel, left, axes, scratch) }
}

/** A value of a reduction, and the tensor that holds it between the launches. */
interface Scratch {
  readonly value: string
  readonly type: ScalarType
  readonly tensor: TensorParam
}

/** A scratch tensor with an element for each point of some axes. */
export const scratchTensor = (name: string, type: ScalarType, axes: readonly RowAxis[]): TensorParam => ({
  name,
  access: 'out',
  dtype: type === 'i32' ? 'i32' : 'f32',
  dims: axes.map(({ dim }) => dim),
  layout: rowMajor(axes.map(({ dim }) => dim)),
})

const placeIn = (axes: readonly RowAxis[]): readonly Expr[] => axes.map(({ index }) => indexVar(index))

/** The launch in front: a point for each of the axes that the reductions depend on. */
function frontKernel(
  kernel: Kernel,
  needed: ReadonlySet<Stmt>,
  rows: readonly RowAxis[],
  scratch: readonly Scratch[],
  part: number,
): Kernel {
  const stores = scratch.map(
    ({ value, type, tensor }): StmtOf<'store'> => ({
      kind: 'store',
      tensor: tensor.name,
      indices: placeIn(rows),
      value: { kind: 'local', name: value, type },
    }),
  )
  const body = [...kernel.body.filter((stmt) => needed.has(stmt)), ...stores]
  const { facts: _, ...rest } = kernel
  const given = [...scratch.map(({ tensor }) => tensor), ...outputsOf(kernel, body)]
  return withUsed({ ...rest, name: `${kernel.name}_part${part}`, rows, body }, given)
}

/** The rest of the kernel, which reads the results from scratch memory. */
function restKernel(kernel: Kernel, left: readonly Stmt[], axes: readonly RowAxis[], scratch: readonly Scratch[]): Kernel {
  const loads = new Map(
    scratch.map(({ value, type, tensor }): [string, Expr] => [
      value,
      { kind: 'load', type, tensor: tensor.name, indices: placeIn(axes) },
    ]),
  )
  const read = (expr: Expr): Expr => rewrite(expr, (node) => (node.kind === 'local' ? (loads.get(node.name) ?? node) : node))
  const body = left.map((stmt) => mapStmt(stmt, read))
  const given = scratch.map(({ tensor }): TensorParam => ({ ...tensor, access: 'in' }))
  return withUsed({ ...kernel, body }, [...given, ...outputsOf(kernel, body)])
}

/** Outputs that statements store. */
function outputsOf({ tensors }: Kernel, body: readonly Stmt[]): readonly TensorParam[] {
  const stored = new Set(body.flatMap((s) => ('tensor' in s ? [s.tensor] : [])))
  return tensors.filter(({ name, access }) => access === 'out' && stored.has(name))
}

/** The kernel with the inputs that it reads, and further tensors. */
export function withUsed(kernel: Kernel, further: readonly TensorParam[]): Kernel {
  const read = new Set<string>()
  visitKernel(kernel, (node) => {
    if (node.kind === 'load') read.add(node.tensor)
  })
  return { ...kernel, tensors: [...kernel.tensors.filter(({ name, access }) => access === 'in' && read.has(name)), ...further] }
}

/** Statements without those whose values nothing reads. */
export function withoutUnread(body: readonly Stmt[]): readonly Stmt[] {
  const read = new Set<string>()
  const kept: Stmt[] = []
  for (const stmt of [...body].reverse()) {
    const names = constructOf(stmt).defines(stmt)
    if (isPlain(stmt) && names.every(({ name }) => !read.has(name))) continue
    kept.unshift(stmt)
    for (const expr of stmtExprs(stmt)) for (const name of freeNames(expr)) read.add(name)
  }
  return kept
}
