/** A scalar computed once per row. */
import type { ScalarType } from '../dtype.js'
import type { Expr } from '../expr.js'
import type { Construct } from './construct.js'

export interface Let {
  readonly kind: 'let'
  readonly name: string
  readonly type: ScalarType
  readonly value: Expr
}

export const letConstruct: Construct<Let> = {
  traits: { makes: 'scalar', elements: 'none', walk: 'none' },
  defines: ({ name, type }) => [{ kind: 'local', name, type }],
  rename: (s, name) => ({ ...s, name: name(s.name) }),
  rowExprs: ({ value }) => [value],
  elementExprs: () => [],
  map: (s, map) => ({ ...s, value: map(s.value) }),
  evaluate: (s, run) => run.setLocal(s.name, run.value(s.value)),
  print: (s, text) => `let ${s.name}: ${s.type} = ${text.expr(s.value)}`,
  verify: (s, check) => check.says(s.name, s.type, check.type(s.value)),
}
