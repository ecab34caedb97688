/** Restrictions of ops that carry rows from step to step: constructs they cannot combine with, and rows that steps and later statements cannot read. */
import type { Node } from 'ts-morph'
import { type FoldState, mostCarried, stepRows } from '../../ir/constructs/fold_state.js'
import type { Kernel, Stmt } from '../../ir/kernel.js'
import { stmtExprs, visit } from '../../ir/walk.js'
import { reject } from '../diagnostics/reject.js'
import { isAt, madeOf } from './rows_step.js'

/** Refuses reads that steps cannot perform, and unsupported uses of their results. */
export function checkSteps({ body }: Pick<Kernel, 'body'>, node: Node): void {
  const folds = body.filter((s): s is FoldState => s.kind === 'foldState')
  if (folds.length === 0) return
  const carried = folds.reduce((sum, { fields }) => sum + fields.filter(({ is }) => is === 'row').length, 0)
  if (carried > mostCarried)
    reject('size', node, `the folds of the op carry ${carried} rows, allowed are ${mostCarried} together`, 'make it two ops')
  const other = body.find(
    ({ kind }) => kind === 'argsort' || kind === 'counts' || kind === 'topK' || kind === 'team' || kind === 'foldRow',
  )
  if (other !== undefined)
    reject(
      'row',
      node,
      `the op carries a row from step to step, as the lanes of a warp do, and also makes ${madeOf(other)}`,
      'make it two ops',
    )
  checkRowsRead(body, folds, node)
  checkStepRows(body, node)
}

/** Rows before a recurrence are recomputed where its steps read them, which is impossible for rows that combine elements. */
function checkRowsRead(body: readonly Stmt[], folds: readonly FoldState[], node: Node): void {
  const plain = new Set<string>()
  const readsOther = (s: Stmt): string | undefined => {
    let found: string | undefined
    const own =
      s.kind === 'foldState' ? new Set([...s.fields.map(({ before }) => before), ...s.step.map(({ name }) => name)]) : undefined
    for (const expr of stmtExprs(s))
      visit(expr, (e) => {
        if (e.kind === 'element' && !plain.has(e.row) && own?.has(e.row) !== true) found = e.row
      })
    return found
  }
  for (const s of body) {
    if (s.kind === 'row' && readsOther(s) === undefined) plain.add(s.name)
    const read = folds.some((fold) => fold === s) ? readsOther(s) : undefined
    if (read !== undefined)
      reject(
        'row',
        node,
        `a fold that carries a row reads ${read}, a row that combines elements or is made of one that does`,
        'its steps read tensors, scalars, and rows of what tensors hold: make the other row in an op of its own',
      )
  }
}

/** Numbers of every step are stored as they are computed, and are not buffered. */
function checkStepRows(body: readonly Stmt[], node: Node): void {
  const rows = stepRows(body)
  for (const s of body) {
    const isStored = s.kind === 'storeRow' && s.when === undefined && s.value.kind === 'element' && isAt(s.value.index, s.index)
    for (const expr of stmtExprs(s))
      visit(expr, (e) => {
        if (e.kind !== 'element' || !rows.has(e.row) || (isStored && e === expr)) return
        reject(
          'row',
          node,
          `${e.row} has a number for each step of a fold that carries a row, which is stored with the step and computed with nowhere else`,
          'return it as an output as it is, row(t, (i) => all.y(i)); compute with it in the step, or in a later op',
        )
      })
  }
}
