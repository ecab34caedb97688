/** A row reduction, computed by all threads of the row together. */
import type { ScalarType } from '../dtype.js'
import { type MonoidName, monoid } from '../monoids.js'
import type { Construct, Looped } from './construct.js'

export interface Reduce extends Looped {
  readonly kind: 'reduce'
  readonly name: string
  readonly type: ScalarType
  readonly monoid: MonoidName
}

export const reduceConstruct: Construct<Reduce> = {
  traits: { makes: 'scalar', elements: 'combined', walk: 'shared' },
  defines: ({ name, type }) => [{ kind: 'local', name, type }],
  rename: (s, name) => ({ ...s, name: name(s.name) }),
  rowExprs: ({ length }) => [length],
  elementExprs: ({ value }) => [value],
  map: (s, map) => ({ ...s, length: map(s.length), value: map(s.value) }),
  evaluate(s, run) {
    const element = run.elementNumber(s.index, s.value)
    run.setLocal(s.name, monoid(s.monoid).evaluate(run.number(s.length), element))
  },
  print: (s, text) => `let ${s.name}: ${s.type} = ${s.monoid}(${text.loop(s)}: ${text.expr(s.value)})`,
  verify(s, check) {
    check.index(s.length)
    check.says(s.name, s.type, check.combined(s.monoid, check.element(s.index, s.value)))
  },
}
