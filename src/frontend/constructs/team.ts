/** Reads calls of team constructs (src/ir/constructs/team/): their arguments by what each construct asks for. */
import type { Node } from 'ts-morph'
import { call, coerce, dim, index as indexOf } from '../../ir/build.js'
import type { Arguments } from '../../ir/constructs/team/construct.js'
import { type TeamCall, teamOf } from '../../ir/constructs/team_call.js'
import type { Expr } from '../../ir/expr.js'
import { substitute } from '../../ir/walk.js'
import { quote, reject } from '../diagnostics/reject.js'
import { type Lowering, type Place, scalar, type Value } from '../static/values.js'
import { argumentAt, asIndex, asScalar, mismatchHints } from '../types/scalars.js'
import { refuseInOrder } from './in_order.js'
import { expectRow, expectRowLevel, loop } from './rows.js'

interface Call {
  readonly construct: TeamCall['construct']
  readonly args: readonly Value[]
  readonly node: Node
  readonly place: Place
}

/** A call of a team construct: a scalar of the kernel. `wanted` is the author's name for it, if any. */
export function teamCall({ construct, args, node, place }: Call, lowering: Lowering, wanted?: string): Value {
  const { words, example, read, takes } = teamOf({ construct })
  if (args.length !== takes)
    return reject('arity', node, `${construct} takes ${takes} arguments, ${args.length} given`, `write ${example}`)
  expectRowLevel(words, node, place)
  const name = wanted === undefined ? lowering.unique(construct, 'derived') : lowering.unique(wanted)
  const parts = read(argumentsOf({ construct, args, node, place }, lowering, `write ${example}`))
  lowering.emit({ kind: 'team', construct, name, ...parts })
  return scalar({ kind: 'local', type: parts.type, name })
}

function argumentsOf({ construct, args, node, place }: Call, lowering: Lowering, example: string): Arguments {
  let index: string | undefined
  const given = (at: number): Value => {
    const value = args[at]
    if (value === undefined) throw new Error(`internal: ${construct} has no argument ${at}`)
    return value
  }
  const float = (expr: Expr, at: Node): Expr =>
    coerce(expr, 'f32') ??
    reject('dtype', at, `${construct} takes numbers, ${quote(at)} is a boolean`, mismatchHints['bool to number'])
  return {
    get index() {
      if (index === undefined) throw new Error(`internal: ${construct} has read no row`)
      return index
    },
    integer: (i, what) => asIndex(given(i), argumentAt(node, i), `${what} of ${construct}:`),
    float: (i) => float(asScalar(given(i), argumentAt(node, i)), argumentAt(node, i)),
    elements(i, length, as, first) {
      const at = argumentAt(node, i)
      expectRow(construct, given(i), at, example)
      const { index: own, value } = loop(length, given(i), at, place, lowering)
      refuseInOrder(value, construct, at, lowering)
      const number = float(value, at)
      index ??= own
      const position = first === undefined ? indexOf(index) : call('add', first, indexOf(index))
      return substitute(as === 'numbers' ? value : number, new Map([[own, position]]))
    },
    integerOf(i, position) {
      const at = argumentAt(node, i)
      expectRow(construct, given(i), at, example)
      return asIndex(lowering.call(given(i), [scalar(position)], at, place), at, `an element of ${quote(at)}:`)
    },
    extentOf(position) {
      const name = position.kind === 'index' ? position.name : ''
      const span = lowering.spans.get(name)
      return lowering.loops.get(name) ?? (span === undefined ? undefined : dim(span))
    },
    scalar(name, value) {
      const local = lowering.unique(name, 'derived')
      lowering.emit({ kind: 'let', name: local, type: value.type, value })
      return { kind: 'local', type: value.type, name: local }
    },
  }
}
