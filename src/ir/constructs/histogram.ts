/**
 * Stores a row of `bins` counts: element b of the tensor's last dimension is the number of values that equal b. Values outside [0, bins)
 * are not counted. The one statement whose elements no thread owns: the threads of a row add to the counts in any order.
 */
import type { Expr } from '../expr.js'
import { countValues } from '../monoids.js'
import type { Construct, Looped } from './construct.js'

export interface Histogram extends Looped {
  readonly kind: 'histogram'
  readonly tensor: string
  readonly rows: readonly Expr[]
  readonly bins: Expr
}

export const histogramConstruct: Construct<Histogram> = {
  traits: { makes: 'output', elements: 'combined', walk: 'shared', alone: 'counts a histogram' },
  defines: () => [],
  rename: (s) => s,
  rowExprs: ({ rows, bins, length }) => [...rows, bins, length],
  elementExprs: ({ value }) => [value],
  map: (s, map) => ({ ...s, rows: s.rows.map(map), bins: map(s.bins), length: map(s.length), value: map(s.value) }),
  evaluate(s, run) {
    const rows = s.rows.map(run.number)
    const counts = countValues(run.number(s.bins), run.number(s.length), run.elementNumber(s.index, s.value))
    for (const [bin, count] of counts.entries()) run.write(s.tensor, [...rows, bin], count)
  },
  print: (s, text) => {
    const at = [...s.rows.map(text.expr), '*'].join(', ')
    return `${s.tensor}[${at}] = histogram(${text.loop(s)}: ${text.expr(s.value)}) of ${text.operand(s.bins)}`
  },
  verify(s, check) {
    for (const at of [...s.rows, s.bins, s.length]) check.index(at)
    if (check.element(s.index, s.value) !== 'i32') check.fail('a histogram counts integers')
    check.store(s.tensor, s.rows.length + 1, 'i32')
  },
}
