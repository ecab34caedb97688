/**
 * Rows of the states of a declared recurrence after each element: one row per field. Steps run in order, from the
 * first element on. Elements of these rows are read at the index of a loop over the row, and nowhere else.
 */
import type { Expr } from '../expr.js'
import { foldFields, type UserRecurrence } from '../user_recurrence.js'
import type { Construct } from './construct.js'

export interface FoldRow {
  readonly kind: 'foldRow'
  /** One name per field. */
  readonly names: readonly string[]
  readonly fold: UserRecurrence
  /** State before the first element. */
  readonly starts: readonly Expr[]
  readonly length: Expr
  readonly index: string
  /** Values that a step takes from an element. */
  readonly values: readonly Expr[]
}

export const foldRowConstruct: Construct<FoldRow> = {
  traits: { makes: 'rows', elements: 'combined', walk: 'where read', alone: 'carries a value along its rows' },
  defines: ({ names, fold }) => names.map((name, i) => ({ kind: 'row', name, type: fold.fields[i]?.type ?? 'f32' })),
  rename: (s, name) => ({ ...s, names: s.names.map(name) }),
  rowExprs: ({ starts, length }) => [...starts, length],
  elementExprs: ({ values }) => values,
  map: (s, map) => ({ ...s, starts: s.starts.map(map), length: map(s.length), values: s.values.map(map) }),
  evaluate(s, run) {
    const taken = s.values.map((value) => run.elementNumber(s.index, value))
    const start = s.starts.map(run.number)
    const all = foldFields(s.fold, start, run.number(s.length), (at) => taken.map((each) => each(at)))
    s.names.forEach((name, i) => {
      run.setRow(
        name,
        all.map((fields) => fields[i] ?? Number.NaN),
      )
    })
  },
  print: ({ names, fold, starts, values, ...s }, text) => {
    const carried = fold.before.map((name, i) => `${name} = ${starts[i] === undefined ? '' : text.expr(starts[i])}`).join(', ')
    const taken = fold.element.map((name, i) => `${name} = ${values[i] === undefined ? '' : text.expr(values[i])}`)
    return `fold (${names.join(', ')}) = (${carried}; ${[text.loop(s), ...taken].join(', ')}: ${fold.next.map(text.expr).join(', ')})`
  },
  verify({ names, fold, starts, values, index, length }, check) {
    check.index(length)
    const { fields, taken, before, element, next } = fold
    for (const list of [names, starts, before, next])
      if (list.length !== fields.length) check.fail(`a fold of ${fields.length} fields has ${list.length} of something`)
    for (const list of [values, element])
      if (list.length !== taken.length) check.fail(`a step takes ${taken.length} values and has ${list.length} of something`)
    fields.forEach(({ name, type }, i) => {
      const [start, made] = [starts[i], next[i]]
      if (start !== undefined) check.says(name, type, check.type(start))
      if (made !== undefined) check.says(name, type, made.type)
    })
    values.forEach((value, i) => {
      check.says(element[i] ?? '', taken[i] ?? 'bool', check.element(index, value))
    })
  },
}
