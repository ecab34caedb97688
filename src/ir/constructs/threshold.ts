/**
 * The largest key of a row such that the elements with that key or a larger one weigh at least `target` together; -Infinity if all weigh
 * less. `value` is an element's weight. Found by all threads of the row together.
 */
import type { Expr } from '../expr.js'
import { thresholdOf } from '../threshold.js'
import type { Construct, Looped } from './construct.js'

export interface Threshold extends Looped {
  readonly kind: 'threshold'
  readonly name: string
  readonly target: Expr
  readonly key: Expr
}

export const thresholdConstruct: Construct<Threshold> = {
  traits: { makes: 'scalar', elements: 'combined', walk: 'own' },
  defines: ({ name }) => [{ kind: 'local', name, type: 'f32' }],
  rename: (s, name) => ({ ...s, name: name(s.name) }),
  rowExprs: ({ target, length }) => [target, length],
  elementExprs: ({ key, value }) => [key, value],
  map: (s, map) => ({ ...s, target: map(s.target), length: map(s.length), key: map(s.key), value: map(s.value) }),
  evaluate(s, run) {
    const [key, weight] = [run.elementNumber(s.index, s.key), run.elementNumber(s.index, s.value)]
    run.setLocal(s.name, thresholdOf(run.number(s.length), run.number(s.target), key, weight))
  },
  print: (s, text) =>
    `let ${s.name}: f32 = threshold(${text.loop(s)}: ${text.expr(s.key)} weighs ${text.expr(s.value)}) of ${text.operand(s.target)}`,
  verify(s, check) {
    check.index(s.length)
    for (const type of [check.type(s.target), check.element(s.index, s.key), check.element(s.index, s.value)])
      if (type !== 'f32') check.fail(`a threshold takes floats, not ${type}`)
  },
}
