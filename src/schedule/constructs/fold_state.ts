/**
 * A recurrence with row state. The lanes of a warp execute its steps together, in loops of their own, with the state in shared memory. Loads are
 * made element by element, coalesced over the lanes. Values stored for every step are stored within the step (`storesOfSteps`).
 */
import { index as indexVar } from '../../ir/build.js'
import type { Check, Defined } from '../../ir/constructs/construct.js'
import { foldStateConstruct, longestCarried, stepRows, verifySteps } from '../../ir/constructs/fold_state.js'
import type { Expr } from '../../ir/expr.js'
import type { StmtOf } from '../../ir/kernel.js'
import { printExpr } from '../../ir/print.js'
import { inlineElements } from '../normalise/elements.js'
import type { FoldedState, Statement } from '../normalise/normal.js'
import { rewriteDown, substituteIndex } from '../normalise/rewrite.js'
import type { Normalise, RowStatement } from './construct.js'

export const normaliseFoldState: Normalise<StmtOf<'foldState'>> = (s, context) => {
  const carried = new Set(s.fields.map(({ after }) => after))
  const rows = new Map<string, Expr>()
  const own = new Set(s.fields.filter(({ is }) => is === 'row').flatMap(({ before, after, result }) => [before, after, result]))
  // Rows of a step that are not carried are computed where they are read.
  const inline = (e: Expr): Expr =>
    rewriteDown(e, (node) => {
      if (node.kind !== 'element') return undefined
      const at = inline(node.index)
      const value = rows.get(node.row)
      if (value !== undefined) return substituteIndex(value, s.column, at)
      return own.has(node.row) ? { ...node, index: at } : inlineElements({ ...node, index: at }, undefined, context)
    })
  const step: FoldedState['step'][number][] = []
  const values: Expr[] = []
  s.step.forEach((part, i) => {
    const given = s.values[i]
    if (given === undefined) return
    const value = inline(given)
    if (part.does === 'row' && !carried.has(part.name)) rows.set(part.name, value)
    else {
      step.push(part)
      values.push(value)
    }
  })
  const width = inlineElements(s.width, undefined, context)
  const folded: FoldedState = {
    ...s,
    length: inlineElements(s.length, undefined, context),
    width,
    most: width.kind === 'const' ? Number(width.value) : longestCarried,
    starts: s.starts.map(inline),
    step,
    values,
    stores: storesOfSteps(s, context.statements),
  }
  for (const name of own) context.shared.set(name, folded)
  return [folded]
}

/** Stores of every step: scalars of the recurrence, by the name of the statement that computes them. */
function storesOfSteps({ fields, index }: StmtOf<'foldState'>, statements: readonly Statement[]): FoldedState['stores'] {
  return statements.flatMap((s) => {
    if (s.kind !== 'storeRow' || s.value.kind !== 'element') return []
    const { row } = s.value
    const field = fields.find(({ is, result }) => is === 'number' && result === row)
    if (field === undefined) return []
    return [{ tensor: s.tensor, indices: [...s.rows, indexVar(index)], value: field.after }]
  })
}

/** Stores that recurrences make within their steps, which are no statements of their own. */
export function madeWithSteps(statements: readonly Statement[]): (s: Statement) => boolean {
  const rows = stepRows(statements)
  return (s) => s.kind === 'storeRow' && s.value.kind === 'element' && rows.has(s.value.row)
}

/** Names that can be read after the steps. */
const defined = (s: FoldedState): readonly Defined[] =>
  foldStateConstruct
    .defines({ ...s, kind: 'foldState' })
    .filter(({ name }) => !s.each || !s.fields.some(({ is, result }) => is === 'number' && result === name))

export const foldedStateStatement: RowStatement<FoldedState> = {
  searches: true,
  isConditional: () => false,
  defines: defined,
  places: ({ length, width }) => [length, width],
  values: ({ starts, values }) => [...starts, ...values],
  // Its expressions read values of its own steps, so no part of them may be hoisted.
  mapValues: (s) => s,
  verify(s, check: Check) {
    check.index(s.length)
    check.index(s.width)
    if (!(s.most >= 1)) check.fail(`there is memory for ${s.most} elements`)
    const bound = s.fields.filter(({ is }) => is === 'row')
    const rows = bound.flatMap(({ before, after }) => [before, after])
    verifySteps(s, check)
    if (new Set(rows).size !== rows.length) check.fail('two carried rows have one name')
    for (const { tensor, indices, value } of s.stores) {
      check.store(tensor, indices.length, 'f32')
      if (!s.step.some(({ name, does }) => name === value && does !== 'row')) check.fail(`no step makes ${value}`)
    }
  },
  describe: ({ fields, length, width, column, stores }) => {
    const stored = stores.length === 0 ? '' : `, storing ${stores.map(({ tensor }) => tensor).join(', ')} with each`
    return `${fields.map(({ result }) => result).join(', ')} = ${printExpr(length)} steps over rows of ${column} < ${printExpr(width)}, in shared memory${stored}`
  },
}
