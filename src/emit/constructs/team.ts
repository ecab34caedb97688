/** A scalar of a team construct as CUDA source: a call that the team of a row makes, with functions from an index to its element. */
import { teamOf } from '../../ir/constructs/team_call.js'
import type { Expr } from '../../ir/expr.js'
import type { TeamScalar } from '../../schedule/normalise/normal.js'
import { contains, rewriteDown, sameExpr, usesIndex } from '../../schedule/normalise/rewrite.js'
import { expressionText, type Scope } from '../print/expression.js'
import { scalarText } from '../print/names.js'
import type { RowText } from './construct.js'

export const teamText: RowText<TeamScalar> = {
  header: (s) => teamOf(s).header,
  write(s, scope) {
    const source = teamOf(s).source(s, {
      expr: (e) => expressionText(e, scope),
      element: (value) => {
        const text = expressionText(value, scope)
        return `[&](int ${scope.names.value(s.loop.index)}) { return ${text}; }`
      },
      elementOf: (value, known, name) => knownText(value, { of: known, name, index: s.loop.index }, scope),
    })
    return `const ${scalarText[s.type]} ${scope.names.value(s.name)} = ${source};`
  },
}

/** A function of the index and of a value that is known. */
function knownText(
  value: Expr,
  { of, name, index }: { readonly of: Expr; readonly name: string; readonly index: string },
  scope: Scope,
): string {
  const known = scope.names.fresh(name)
  const rest = rewriteDown(value, (e) => (sameExpr(e, of) ? { kind: 'local', type: e.type, name: known } : undefined))
  const names = { ...scope.names, value: (name: string): string => (name === known ? known : scope.names.value(name)) }
  const text = expressionText(rest, { ...scope, names })
  const places = usesIndex(rest, index) ? ` ${scope.names.value(index)}` : ''
  const values = contains(rest, (e) => e.kind === 'local' && e.name === known) ? ` ${known}` : ''
  return `[&](int${places}, ${scalarText[of.type]}${values}) { return ${text}; }`
}
