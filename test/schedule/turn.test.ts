/** Loops are interchanged if that vectorises stores of single elements and keeps reads coalesced, and not otherwise. */
import { expect, it } from 'vitest'
import { call, dim, f32, i32, index } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import type { Kernel } from '../../src/ir/kernel.js'
import type { Layout } from '../../src/ir/layout.js'
import { turn } from '../../src/schedule/access/interchange.js'
import { axis, kernel, load, tensor } from './fixtures.js'

const [m, c] = [index('m'), index('c')]

/** Blocks of `rows` rows, column by column: neighbours of a column lie together. */
const blocks = (rows: number): Layout => ({
  name: 'blocks',
  axes: ['m', 'n'],
  offset: call(
    'add',
    call('mul', call('add', call('mul', call('idiv', index('m'), i32(rows)), dim('n')), index('n')), i32(rows)),
    call('mod', index('m'), i32(rows)),
  ),
  size: call('mul', call('mul', call('idiv', call('add', dim('m'), i32(rows - 1)), i32(rows)), i32(rows)), dim('n')),
})

/** Stores `value` of row `m` and column `c` in such blocks. */
const blocked = (value: Expr, rows = 32, more: Partial<Kernel> = {}): Kernel => ({
  ...kernel(
    'blocked',
    'm n',
    [axis('m', 'm')],
    [
      tensor('x', 'in', 'm n'),
      tensor('z', 'in', 'm'),
      tensor('t', 'in', 'n m'),
      tensor('y', 'out', 'm n', { param: 'T' }, blocks(rows)),
    ],
    [{ kind: 'storeRow', tensor: 'y', rows: [m], length: dim('n'), index: 'c', value }],
  ),
  ...more,
})

it('if a tensor is read along the axis that is stored element by element', () => {
  const turned = turn(blocked(load('x', m, c)), {})
  expect(turned?.across).toEqual({ index: 'c', dim: 'n' })
  expect(turned?.kernel.rows).toEqual([
    { index: 'c', dim: 'n' },
    { index: 'm', dim: 'm' },
  ])
  expect(turned?.kernel.body).toEqual([{ kind: 'store', tensor: 'y', indices: [m, c], value: load('x', m, c) }])
})

it.each<[string, Kernel]>([
  ['nothing is read', blocked(f32(1))],
  ['what is read is the same for the row', blocked(load('z', m))],
  ['what is read lies as what is stored', blocked(load('t', c, m))],
  ['a vector would be short', blocked(load('x', m, c), 2)],
  ['the row is reduced', blocked(load('x', m, c), 32, { body: [...blocked(load('x', m, c)).body, reduction()] })],
])('not where %s', (_, subject) => {
  expect(turn(subject, {})).toBeUndefined()
})

function reduction(): Kernel['body'][number] {
  return {
    kind: 'reduce',
    name: 'most',
    type: 'f32',
    monoid: 'max',
    length: dim('n'),
    index: 'd',
    value: load('x', m, index('d')),
  }
}
