/** Rows in shared memory: values common to all elements of a loop, and rows computed in order; never a row of a single element. */
import { expect, it } from 'vitest'
import { call, dim, f32, i32, index } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import { normalise } from '../../src/schedule/normalise/normalise.js'
import { axis, element, kernel, load, tensor } from './fixtures.js'

/** Each element of `y` reads the last of four sums, of `value` each. */
function sharedOf(rows: string, value: Expr): readonly string[] {
  const names = rows.split(' ')
  const sums: Expr = { kind: 'fold', type: 'f32', monoid: 'sum', length: dim('k'), index: 't', value }
  const body = kernel(
    'sums',
    `${names.map((name) => `${name}${name}`).join(' ')} q k`,
    names.map((name) => axis(name, `${name}${name}`)),
    [tensor('x', 'in', 'q k'), tensor('z', 'in', 'aa q k'), tensor('y', 'out', names.map((name) => `${name}${name}`).join(' '))],
    [
      { kind: 'row', name: 'v', type: 'f32', length: i32(4), index: 'j', value: sums },
      { kind: 'store', tensor: 'y', indices: names.map(index), value: call('mul', element('v', i32(3)), f32(2)) },
    ],
  )
  return [...normalise({ kernel: body, types: { T: 'f32' }, dims: { q: 4 } }).shared.keys()]
}
const common = load('x', index('j'), index('t'))
const own = load('z', index('a'), index('j'), index('t'))

it.each(['a', 'a b', 'b a', 'a b c', 'b c a'])('elements %s', (rows) => {
  expect(sharedOf(rows, common)).toEqual(['v'])
  // A value that depends on an axis outside of the loop is the same for all elements of the loop.
  expect(sharedOf(rows, own)).toEqual(rows.endsWith('a') ? [] : ['v'])
})

it('values computed from a recurrence and read elsewhere', () => {
  const fold = {
    fields: [{ name: 'h', type: 'f32' as const }],
    taken: ['f32' as const],
    before: ['was'],
    element: ['e'],
    next: [call('add', { kind: 'local', type: 'f32', name: 'was' }, { kind: 'local', type: 'f32', name: 'e' })],
  }
  const body = (at: Expr) =>
    kernel(
      'copied',
      'm n',
      [axis('a', 'm')],
      [tensor('x', 'in', 'm n'), tensor('y', 'out', 'm n')],
      [
        {
          kind: 'foldRow',
          names: ['h'],
          fold,
          starts: [f32(0)],
          length: i32(8),
          index: 'i',
          values: [load('x', index('a'), index('i'))],
        },
        { kind: 'row', name: 'copy', type: 'f32', length: i32(8), index: 'j', value: element('h', index('j')) },
        {
          kind: 'row',
          name: 'twice',
          type: 'f32',
          length: i32(8),
          index: 'l',
          value: call('mul', element('copy', index('l')), f32(2)),
        },
        { kind: 'storeRow', tensor: 'y', rows: [index('a')], length: i32(8), index: 'c', value: element('twice', at) },
      ],
    )
  const kept = (at: Expr) => [...normalise({ kernel: body(at), types: { T: 'f32' }, dims: { n: 8 } }).shared.keys()]
  expect(kept(i32(7))).toEqual(['twice'])
  expect(kept(index('c'))).toEqual([])
})
