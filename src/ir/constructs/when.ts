/** Optional condition of a store. */
import type { Expr } from '../expr.js'
import type { Text } from './construct.js'

interface Conditional {
  readonly when?: Expr
}

export const whenOf = ({ when }: Conditional): readonly Expr[] => (when === undefined ? [] : [when])

export const mapWhen = ({ when }: Conditional, map: (expr: Expr) => Expr): Conditional =>
  when === undefined ? {} : { when: map(when) }

export const printWhen = ({ when }: Conditional, text: Text): string => (when === undefined ? '' : ` when ${text.expr(when)}`)
