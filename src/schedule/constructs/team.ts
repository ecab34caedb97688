/** A scalar of a team construct. The threads of a row compute it in loops of their own, so its elements read no row and load one by one. */
import { index as indexVar } from '../../ir/build.js'
import { mapTeam, teamCallConstruct, teamRowExprs, verifyTeam } from '../../ir/constructs/team_call.js'
import type { Expr } from '../../ir/expr.js'
import type { StmtOf } from '../../ir/kernel.js'
import { printStmt } from '../../ir/print.js'
import { inlineElements, loopFor } from '../normalise/elements.js'
import type { TeamScalar } from '../normalise/normal.js'
import { substituteIndex } from '../normalise/rewrite.js'
import type { Normalise, RowStatement } from './construct.js'

export const normaliseTeam: Normalise<StmtOf<'team'>> = (s, context) => {
  const loop = loopFor(s.index, s.usual ?? s.length, context)
  const ofRow = (e: Expr): Expr => inlineElements(e, undefined, context)
  const ofElement = (e: Expr): Expr => ofRow(substituteIndex(e, s.index, indexVar(loop.index)))
  const made = mapTeam(s, ofRow, ofElement)
  return [{ ...made, length: s.usual === undefined ? loop.length : made.length, index: loop.index, loop }]
}

export const teamStatement: RowStatement<TeamScalar> = {
  searches: true,
  isConditional: () => false,
  defines: teamCallConstruct.defines,
  places: (s) => [...teamRowExprs(s), s.loop.length],
  values: teamCallConstruct.elementExprs,
  mapValues: (s, map) => mapTeam(s, (e) => e, map),
  verify: verifyTeam,
  describe: printStmt,
}
