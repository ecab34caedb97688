/** A call of a team construct (src/ir/constructs/team/): one statement for all of them. */
import type { Expr } from '../expr.js'
import type { Check, Construct } from './construct.js'
import { constructOfFunction, type TeamConstruct, type TeamParts } from './team/construct.js'
import * as functions from './team/index.js'

export interface TeamCall extends TeamParts {
  readonly kind: 'team'
  readonly construct: keyof typeof functions
  readonly name: string
}

export const isTeamName = (name: string): name is TeamCall['construct'] => constructs.has(name)

const constructs: ReadonlyMap<string, TeamConstruct> = new Map(
  Object.entries(functions).map(([name, called]) => [name, constructOfFunction(called)]),
)

/** The construct that a statement calls. */
export function teamOf({ construct }: Pick<TeamCall, 'construct'>): TeamConstruct {
  const found = constructs.get(construct)
  if (found === undefined) throw new Error(`internal: there is no team construct ${construct}`)
  return found
}

/** A record with each value replaced. */
export function mapNamed<T, U>(named: Readonly<Record<string, T>>, map: (each: T) => U): Readonly<Record<string, U>> {
  return Object.fromEntries(Object.entries(named).map(([name, each]) => [name, map(each)]))
}

/** A call with its expressions replaced: those computed once per row, and those of elements. */
export function mapTeam<S extends TeamParts>(s: S, ofRow: (expr: Expr) => Expr, ofElement: (expr: Expr) => Expr): S {
  const usual = s.usual && ofRow(s.usual)
  return {
    ...s,
    length: ofRow(s.length),
    ...(usual && { usual }),
    scalars: mapNamed(s.scalars, ofRow),
    elements: mapNamed(s.elements, ofElement),
  }
}

/** Expressions of a call that are computed once per row. */
export const teamRowExprs = ({ length, usual, scalars }: TeamParts): readonly Expr[] => [
  ...Object.values(scalars),
  length,
  ...(usual === undefined ? [] : [usual]),
]

export function verifyTeam(s: TeamCall, check: Check): void {
  for (const length of [s.length, ...(s.usual === undefined ? [] : [s.usual])]) check.index(length)
  const scalars = mapNamed(s.scalars, check.type)
  const problem = teamOf(s).mismatch(
    s.type,
    scalars,
    mapNamed(s.elements, (value) => check.element(s.index, value)),
  )
  if (problem !== undefined) check.fail(problem)
}

export const teamCallConstruct: Construct<TeamCall> = {
  traits: { makes: 'scalar', elements: 'combined', walk: 'own' },
  defines: ({ name, type }) => [{ kind: 'local', name, type }],
  rename: (s, name) => ({ ...s, name: name(s.name) }),
  rowExprs: teamRowExprs,
  elementExprs: ({ elements }) => Object.values(elements),
  map: (s, map) => mapTeam(s, map, map),
  evaluate(s, run) {
    const elements = mapNamed(s.elements, (value) => run.elementNumber(s.index, value))
    run.setLocal(s.name, teamOf(s).evaluate(run.number(s.length), mapNamed(s.scalars, run.number), elements))
  },
  print: (s, text) => `let ${s.name}: ${s.type} = ${teamOf(s).print(s, text)}`,
  verify: verifyTeam,
}
