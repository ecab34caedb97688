/** An inclusive scan: element `index` combines the values of elements 0 to `index`, computed by all threads of the row together. */
import type { ScalarType } from '../dtype.js'
import { type MonoidName, monoid } from '../monoids.js'
import type { Construct, Looped } from './construct.js'

export interface Scan extends Looped {
  readonly kind: 'scan'
  readonly name: string
  readonly type: ScalarType
  readonly monoid: MonoidName
}

export const scanConstruct: Construct<Scan> = {
  traits: { makes: 'rows', elements: 'combined', walk: 'where read' },
  defines: ({ name, type }) => [{ kind: 'row', name, type }],
  rename: (s, name) => ({ ...s, name: name(s.name) }),
  rowExprs: ({ length }) => [length],
  elementExprs: ({ value }) => [value],
  map: (s, map) => ({ ...s, length: map(s.length), value: map(s.value) }),
  evaluate(s, run) {
    const element = run.elementNumber(s.index, s.value)
    run.setRow(s.name, monoid(s.monoid).scan(run.number(s.length), element))
  },
  print: (s, text) => `row ${s.name}: ${s.type} = scan ${s.monoid}(${text.loop(s)}: ${text.expr(s.value)})`,
  verify(s, check) {
    check.index(s.length)
    check.says(s.name, s.type, check.combined(s.monoid, check.element(s.index, s.value)))
  },
}
