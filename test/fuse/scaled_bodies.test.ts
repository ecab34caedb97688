/** Inputs of a body that can absorb a factor of its result, in bodies that no shipped op has. */
import { expect, it } from 'vitest'
import { scaledInputs } from '../../src/fuse/graph/scaled_bodies.js'
import { call, dim, f32, index } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import type { Stmt } from '../../src/ir/kernel.js'
import { axis, kernel, load, tensor } from '../schedule/fixtures.js'

const [m, c] = [index('m'), index('c')]
const [x, g] = [load('x', m, c), load('g', c)]
const store = (name: string, value: Expr): Stmt => ({
  kind: 'storeRow',
  tensor: name,
  rows: [m],
  length: dim('n'),
  index: 'c',
  value,
})

/** The tensors that are scaled together, for each way in which `y` comes out scaled. */
function waysOf(y: Expr, ...more: readonly Stmt[]): string {
  const tensors = [tensor('x', 'in', 'm n'), tensor('g', 'in', 'n'), tensor('y', 'out', 'm n'), tensor('z', 'out', 'm n')]
  const body = kernel('body', 'm n', [axis('m', 'm')], tensors, [store('y', y), ...more])
  const ways = scaledInputs(body, 'y', {}, [undefined, index('factor')])
  return ways.map((way) => way.map((each) => each.tensor).join(' with ')).join(', ')
}

it.each<[string, Expr, string]>([
  ['a product, on either side', call('mul', x, g), 'x, g'],
  ['a quotient, above', call('div', x, g), 'x'],
  ['the other sign', call('neg', x), 'x'],
  ['a sum, on both sides', call('add', x, g), 'x with g'],
  ['a difference, on both sides', call('sub', x, g), 'x with g'],
  ['a choice, whatever is chosen', call('select', call('lt', c, m), x, g), 'x with g'],
  ['a choice that the factor would change', call('select', call('lt', x, g), x, g), ''],
  ['a sum with a number', call('add', x, f32(1)), ''],
  ['a square', call('mul', x, x), ''],
  ['a function that keeps no factors', call('exp', x), ''],
])('%s', (_, y, ways) => {
  expect(waysOf(y)).toBe(ways)
})

it('inputs of another result cannot absorb a factor', () => {
  expect(waysOf(call('mul', x, g), store('z', x))).toBe('g')
  expect(waysOf(call('mul', x, g), store('z', call('add', x, g)))).toBe('')
  // Terms are scaled together or not at all.
  expect(waysOf(call('add', x, g), store('z', g))).toBe('')
})

it('values stored in parts, or under a condition, are not scaled', () => {
  expect(waysOf(x, store('y', x))).toBe('')
  const tensors = [tensor('x', 'in', 'm n'), tensor('y', 'out', 'm n')]
  const stored = (when: object): Stmt => ({ ...store('y', x), ...when }) as Stmt
  const ways = (when: object): number =>
    scaledInputs(kernel('part', 'm n', [axis('m', 'm')], tensors, [stored(when)]), 'y', {}, [undefined, index('factor')]).length
  expect([ways({}), ways({ when: call('lt', m, c) })]).toEqual([1, 0])
})
