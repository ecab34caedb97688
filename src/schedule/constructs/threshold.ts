/** A threshold. The threads of a row find it in loops of their own, so its key and weight read no row and load element by element. */
import { index as indexVar } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import type { StmtOf } from '../../ir/kernel.js'
import { printExpr } from '../../ir/print.js'
import { inlineElements, loopFor } from '../normalise/elements.js'
import type { Threshold } from '../normalise/normal.js'
import { substituteIndex } from '../normalise/rewrite.js'
import type { Normalise, RowStatement } from './construct.js'

export const normaliseThreshold: Normalise<StmtOf<'threshold'>> = (s, context) => {
  const loop = loopFor(s.index, s.length, context)
  const element = (e: Expr): Expr => inlineElements(substituteIndex(e, s.index, indexVar(loop.index)), undefined, context)
  const target = inlineElements(s.target, undefined, context)
  return [{ kind: 'threshold', name: s.name, target, loop, key: element(s.key), value: element(s.value) }]
}

export const thresholdStatement: RowStatement<Threshold> = {
  searches: true,
  isConditional: () => false,
  defines: ({ name }) => [{ kind: 'local', name, type: 'f32' }],
  places: ({ target, loop }) => [target, loop.length],
  values: ({ key, value }) => [key, value],
  mapValues: (s, map) => ({ ...s, key: map(s.key), value: map(s.value) }),
  verify(s, check) {
    for (const type of [check.type(s.target), check.element(s.loop.index, s.key), check.element(s.loop.index, s.value)])
      if (type !== 'f32') check.fail(`a threshold takes floats, not ${type}`)
  },
  describe: ({ name, key, value, loop }) =>
    `${name} = threshold of ${printExpr(key)} weighing ${printExpr(value)} over ${loop.index} < ${printExpr(loop.length)}`,
}
