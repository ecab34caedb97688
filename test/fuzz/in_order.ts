/** Constructs that combine a row in order: monoids of an author, recurrences of numbers, and rows that are carried. */

import { along, type Body, key, withNumber, withRow } from './body.js'
import {
  call,
  type Expr,
  element,
  load,
  type MonoidDesc,
  named,
  num,
  type Result,
  reduce,
  type Stmt,
  scalarOf,
  whole,
} from './describe.js'
import type { Context, OpDraft } from './draft.js'

const field = (side: 'x' | 'y', name: string, type: 'f32' | 'i32' = 'f32'): Expr => named(`${side}.${name}`, type)

/** Monoids declared like an author's: a linear recurrence, the best with its index, counts and sums, a sum of exponentials. */
function monoidOf(draft: OpDraft): MonoidDesc {
  const name = draft.fresh('own')
  const sum = (of: string, type: 'f32' | 'i32' = 'f32'): Expr => call(type, 'add', field('x', of, type), field('y', of, type))
  switch (draft.random.below(4)) {
    case 0:
      return {
        name,
        fields: [
          { name: 'a', type: 'f32', identity: 1, combine: call('f32', 'mul', field('x', 'a'), field('y', 'a')) },
          {
            name: 'b',
            type: 'f32',
            identity: 0,
            combine: call('f32', 'add', call('f32', 'mul', field('x', 'b'), field('y', 'a')), field('y', 'b')),
          },
        ],
      }
    case 1: {
      const later = call('bool', 'gt', field('y', 'best'), field('x', 'best'))
      return {
        name,
        fields: [
          { name: 'best', type: 'f32', identity: -1e30, combine: call('f32', 'maximum', field('x', 'best'), field('y', 'best')) },
          {
            name: 'at',
            type: 'i32',
            identity: 0,
            combine: call('i32', 'select', later, field('y', 'at', 'i32'), field('x', 'at', 'i32')),
          },
        ],
      }
    }
    case 2:
      return {
        name,
        fields: [
          { name: 'total', type: 'f32', identity: 0, combine: sum('total') },
          { name: 'count', type: 'i32', identity: 0, combine: sum('count', 'i32') },
        ],
      }
    default: {
      const top = call('f32', 'maximum', field('x', 'top'), field('y', 'top'))
      const part = (side: 'x' | 'y'): Expr =>
        call('f32', 'mul', field(side, 'mass'), call('f32', 'exp', call('f32', 'sub', field(side, 'top'), top)))
      return {
        name,
        fields: [
          { name: 'top', type: 'f32', identity: -1e30, combine: top },
          { name: 'mass', type: 'f32', identity: 0, combine: call('f32', 'add', part('x'), part('y')) },
        ],
      }
    }
  }
}

export function monoid(draft: OpDraft, body: Body): Body {
  const { random } = draft
  const own = monoidOf(draft)
  draft.monoids.push(own)
  // The maximum with its index is not a commutative monoid, and only a scan does not need one.
  const isOrdered = own.fields.some(({ name }) => name === 'a' || name === 'at')
  const use = isOrdered || random.chance(0.5) ? 'scan' : 'reduce'
  const at = along(body)
  const elementOf: Readonly<Record<string, () => Expr>> = {
    a: () => call('f32', 'mul', call('f32', 'tanh', draft.float(1, at)), num(0.75)),
    at: () => named('c'),
    best: () => key(draft, body),
    count: () => call('i32', 'select', draft.boolean(1, at), whole(1), whole(0)),
    top: () => key(draft, body),
    mass: () => num(1.5),
  }
  const name = draft.fresh('w')
  const fields = Object.fromEntries(
    own.fields.map((each) => [each.name, (elementOf[each.name] ?? (() => draft.float(2, at)))()] as const),
  )
  draft.body.push({ kind: 'monoid', name, use, monoid: own.name, length: body.n, index: 'c', fields })
  return own.fields.reduce(
    (sum, each) =>
      use === 'scan' ? withRow(sum, `${name}.${each.name}`, each.type, true) : withNumber(sum, `${name}.${each.name}`, each.type),
    body,
  )
}

/** A recurrence of numbers, bounded so that errors stay small. */
export function fold(draft: OpDraft, body: Body): Body {
  const { random } = draft
  const at: Context = { ...along(body), plain: true, rows: body.at.rows.filter(({ ordered }) => !ordered) }
  const name = draft.fresh('f')
  const step = call(
    'f32',
    'add',
    call('f32', 'mul', named('p', 'f32'), num(random.pick([0.5, 0.875, -0.75]))),
    draft.float(2, at),
  )
  const next = random.chance(0.5) ? call('f32', random.pick(['tanh', 'maximum']), step, num(-0.5)) : step
  const bent = next.kind === 'call' && next.fn === 'tanh' ? call('f32', 'tanh', step) : next
  const counts = random.chance(0.4)
  const each = random.chance(0.6)
  const stepped = call(
    'i32',
    'select',
    call('bool', 'lt', named('p', 'f32'), draft.float(1, at)),
    call('i32', 'add', named('q'), whole(1)),
    named('q'),
  )
  draft.body.push({
    kind: 'fold',
    name,
    each,
    length: body.n,
    index: 'c',
    fields: [
      { is: 'number', name: 'p', type: 'f32', start: num(random.pick([0.5, 1.5])), next: bent },
      ...(counts ? [{ is: 'number', name: 'q', type: 'i32', start: whole(0), next: stepped } as const] : []),
    ],
    step: [],
  })
  const fields: readonly (readonly [string, 'f32' | 'i32'])[] = [['p', 'f32'], ...(counts ? [['q', 'i32'] as const] : [])]
  return fields.reduce(
    (sum, [of, type]) => (each ? withRow(sum, `${name}.${of}`, type, true) : withNumber(sum, `${name}.${of}`, type)),
    body,
  )
}

/** A row carried from step to step: a state that decays, and accumulates the input of each step. */
export function carry(draft: OpDraft, body: Body): Body {
  const { random } = draft
  const t = draft.dim('t', 'few')
  const outer = body.at.indices.map(({ dim }) => dim)
  const x = draft.input([...outer, t, body.n], { domain: { kind: 'unit' } })
  const g = draft.input([...outer, t], { domain: { kind: 'unit' } })
  const own = body.at.indices.map(({ name }) => named(name))
  const read = load('f32', x, ...own, named('i'), named('c'))
  const gate = load('f32', g, ...own, named('i'))
  const name = draft.fresh('f')
  const step: Stmt[] = []
  let add: Expr = call('f32', 'mul', gate, read)
  if (random.chance(0.6)) {
    const known = draft.fresh('t')
    const place = random.chance(0.3) ? call('i32', 'maximum', call('i32', 'sub', named('c'), whole(1)), whole(0)) : named('c')
    const value = call('f32', 'mul', element('f32', 's', place), read)
    step.push({ kind: 'const', name: known, value: reduce(random.pick(['sum', 'max'] as const), body.n, 'c', value) })
    add = call('f32', 'mul', read, call('f32', 'tanh', named(known, 'f32')))
  }
  const shift = random.chance(0.4) ? call('i32', 'maximum', call('i32', 'sub', named('c'), whole(1)), whole(0)) : named('c')
  const next = call('f32', 'add', call('f32', 'mul', element('f32', 's', shift), num(0.75)), add)
  const start = draft.inputs.find(({ dims, dtype }) => dims.join() === [...outer, body.n].join() && scalarOf(dtype) === 'f32')
  const first = start === undefined ? num(0.5) : load('f32', start.name, ...own, named('c'))
  const each = random.chance(0.5)
  const total = call('f32', 'add', call('f32', 'mul', named('z', 'f32'), num(0.5)), gate)
  draft.body.push({
    kind: 'fold',
    name,
    each,
    length: t,
    index: 'i',
    fields: [
      {
        is: 'row',
        name: 's',
        start: { length: body.n, index: 'c', value: first },
        next: { length: body.n, index: 'c', value: next },
      },
      ...(each ? [{ is: 'number', name: 'z', type: 'f32', start: num(0.5), next: total } as const] : []),
    ],
    step,
  })
  const kept: Result = { kind: 'row', loop: { length: body.n, index: 'c', value: element('f32', `${name}.s`, named('c')) } }
  const steps: Result = { kind: 'row', loop: { length: t, index: 'i', value: element('f32', `${name}.z`, named('i')) } }
  return { ...body, outputs: [{ dims: [body.n], result: kept }, ...(each ? [{ dims: [t], result: steps }] : [])] }
}
