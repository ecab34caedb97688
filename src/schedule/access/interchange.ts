/**
 * Loop interchange for kernels that transpose: reads are contiguous along one axis, stores along another. Neighbouring threads stay on the axis of
 * the reads, so that loads coalesce. The loop of a thread runs along the axis of the stores, so that each thread stores a vector. Without it every
 * stored element would use a memory sector of its own. Runs before a kernel is brought into normal form.
 *
 *     for m: y[c, m] = x[m, c] for c < n      becomes      for c (neighbouring threads), m (the loop): y[c, m] = x[m, c]
 */
import { index as indexVar } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import type { Kernel, RowAxis, Stmt, StmtOf, TensorParam } from '../../ir/kernel.js'
import { visitKernel } from '../../ir/walk.js'
import { substituteIndex } from '../normalise/rewrite.js'
import { classify, offsetOf } from './access.js'
import { multiplesOf } from './multiples.js'

/** Shorter vectors are not worth an interchange. */
const shortestRun = 4

export interface Turned {
  /** Results are scalars of the row axes; stores are contiguous along the last axis. */
  readonly kernel: Kernel
  /** The axis along which neighbouring threads run. */
  readonly across: RowAxis
}

/** The kernel with its loops interchanged; undefined if it has a reduction, if its stores are contiguous already, or if there is no gain. */
export function turn(kernel: Kernel, fixed: Readonly<Record<string, number>>): Turned | undefined {
  const stores = kernel.body.filter((s): s is StmtOf<'storeRow'> => s.kind === 'storeRow')
  const [first] = stores
  const lets = kernel.body.filter((s): s is StmtOf<'let'> => s.kind === 'let')
  if (first?.length.kind !== 'dim' || stores.length + lets.length !== kernel.body.length) return undefined
  const { length } = first
  const multiples = multiplesOf(kernel)
  if (
    stores.some((s) => s.length.kind !== 'dim' || s.length.name !== length.name || s.when !== undefined || s.axis !== undefined)
  )
    return undefined
  const tensor = (name: string): TensorParam | undefined => kernel.tensors.find((t) => t.name === name)
  const runOf = (name: string, indices: readonly Expr[], along: string): 'scattered' | 'uniform' | number => {
    const found = tensor(name)
    const access = found === undefined ? undefined : classify(offsetOf(found, indices, fixed), along, multiples)
    return access?.kind === 'contiguous' ? access.run : access?.kind === 'uniform' ? 'uniform' : 'scattered'
  }
  const runAlong = (s: StmtOf<'storeRow'>, along: string) => runOf(s.tensor, [...s.rows, indexVar(s.index)], along)
  if (stores.some((s) => runAlong(s, s.index) !== 'scattered')) return undefined
  const axis = kernel.rows.find(({ index }) =>
    stores.every((s) => {
      const run = runAlong(s, index)
      return typeof run === 'number' && run >= shortestRun
    }),
  )
  if (axis === undefined || !readsAlong(kernel, stores, runOf)) return undefined
  const across: RowAxis = { index: first.index, dim: length.name }
  const body = kernel.body.map((s): Stmt => {
    if (s.kind !== 'storeRow') return s
    const at = (e: Expr): Expr => substituteIndex(e, s.index, indexVar(across.index))
    return { kind: 'store', tensor: s.tensor, indices: [...s.rows, indexVar(across.index)], value: at(s.value) }
  })
  const others = kernel.rows.filter((row) => row !== axis)
  return { kernel: { ...kernel, rows: [...others, across, axis], body }, across }
}

/** True if some load is contiguous along the axis of the strided stores. */
function readsAlong(
  kernel: Kernel,
  stores: readonly StmtOf<'storeRow'>[],
  runOf: (tensor: string, indices: readonly Expr[], along: string) => 'scattered' | 'uniform' | number,
): boolean {
  let found = false
  for (const s of stores) {
    visitKernel({ ...kernel, body: [s] }, (e) => {
      if (e.kind === 'load' && typeof runOf(e.tensor, e.indices, s.index) === 'number') found = true
    })
  }
  return found
}
