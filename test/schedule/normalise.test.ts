/** Rows in shared memory hold what all elements of a loop have in common: no row of an element's own is among them. */
import { expect, it } from 'vitest'
import { call, dim, f32, i32, index } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import { normalise } from '../../src/schedule/normalise.js'
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
  // What depends on an axis in front of the loop is the same for all elements of the loop.
  expect(sharedOf(rows, own)).toEqual(rows.endsWith('a') ? [] : ['v'])
})
