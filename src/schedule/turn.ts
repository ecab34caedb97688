/**
 * Turns a kernel that stores across the order it reads in, such as one that stores the transpose of a matrix. Its threads keep
 * running along what is read, so that neighbours read neighbours, but each takes a run of what is stored: a store of one element a
 * thread, far from its neighbours', would move a whole sector of memory for it. Runs before a kernel is brought into normal form.
 */
import { index as indexVar } from '../ir/build.js'
import type { Expr } from '../ir/expr.js'
import type { Kernel, RowAxis, Stmt, StmtOf, TensorParam } from '../ir/kernel.js'
import { visitKernel } from '../ir/walk.js'
import { classify, offsetOf } from './access.js'
import { substituteIndex } from './rewrite.js'

/** Runs shorter than this are not worth turning for. */
const shortestRun = 4

export interface Turned {
  /** Results are scalars of the row axes, of which the last is the one stores are contiguous along. */
  readonly kernel: Kernel
  /** The axis neighbouring threads run along. */
  readonly across: RowAxis
}

/** The turned kernel; undefined for one that has a reduction, stores in the order it reads, or gains nothing. */
export function turn(kernel: Kernel, fixed: Readonly<Record<string, number>>): Turned | undefined {
  const stores = kernel.body.filter((s): s is StmtOf<'storeRow'> => s.kind === 'storeRow')
  const [first] = stores
  const lets = kernel.body.filter((s): s is StmtOf<'let'> => s.kind === 'let')
  if (first?.length.kind !== 'dim' || stores.length + lets.length !== kernel.body.length) return undefined
  const { length } = first
  if (stores.some((s) => s.length.kind !== 'dim' || s.length.name !== length.name || s.when !== undefined)) return undefined
  const tensor = (name: string): TensorParam | undefined => kernel.tensors.find((t) => t.name === name)
  const motion = (name: string, indices: readonly Expr[], along: string): 'scattered' | 'still' | number => {
    const found = tensor(name)
    const access = found === undefined ? undefined : classify(offsetOf(found, indices, fixed), along)
    return access?.kind === 'contiguous' ? access.run : access?.kind === 'uniform' ? 'still' : 'scattered'
  }
  const runAlong = (s: StmtOf<'storeRow'>, along: string) => motion(s.tensor, [...s.rows, indexVar(s.index)], along)
  if (stores.some((s) => runAlong(s, s.index) !== 'scattered')) return undefined
  const axis = kernel.rows.find(({ index }) =>
    stores.every((s) => {
      const run = runAlong(s, index)
      return typeof run === 'number' && run >= shortestRun
    }),
  )
  if (axis === undefined || !readsAlong(kernel, stores, motion)) return undefined
  const across: RowAxis = { index: first.index, dim: length.name }
  const body = kernel.body.map((s): Stmt => {
    if (s.kind !== 'storeRow') return s
    const at = (e: Expr): Expr => substituteIndex(e, s.index, indexVar(across.index))
    return { kind: 'store', tensor: s.tensor, indices: [...s.rows, indexVar(across.index)], value: at(s.value) }
  })
  const others = kernel.rows.filter((row) => row !== axis)
  return { kernel: { ...kernel, rows: [...others, across, axis], body }, across }
}

/** Whether something is read in runs along what is stored element by element. */
function readsAlong(
  kernel: Kernel,
  stores: readonly StmtOf<'storeRow'>[],
  motion: (tensor: string, indices: readonly Expr[], along: string) => 'scattered' | 'still' | number,
): boolean {
  let found = false
  for (const s of stores) {
    visitKernel({ ...kernel, body: [s] }, (e) => {
      if (e.kind === 'load' && typeof motion(e.tensor, e.indices, s.index) === 'number') found = true
    })
  }
  return found
}
