/** Structs of monoids and recurrences of authors: one for all uses of a declaration, and one for each declaration that computes something else. */
import { expect, it } from 'vitest'
import { structTexts } from '../../src/emit/print/user_monoid.js'
import { ownsOf, userMonoidName } from '../../src/emit/print/user_monoids.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { columnsOf } from '../../src/schedule/divided/column_reductions.js'
import { read } from '../frontend/refuse.js'

const subject = (module: string, statements: string, result: string): Kernel => {
  const text = `import { fold, int, monoid, op, tensor } from 'heddle'
${module}
export const subject = op('subject', { dims: ['m', 'n'], inputs: { x: tensor('f32', 'm n') }, outputs: { y: tensor('f32', 'n') },
  body: ({ x }, { m }) => (c) => {
    ${statements}
    return { y: ${result} }
  } })`
  const [kernel] = read(text).kernels
  if (kernel === undefined) throw new Error('the spec is refused')
  return kernel
}
const pair = (name: string, combine: string, identity = '0'): string =>
  `const ${name} = monoid({ identity: { a: ${identity}, b: 0 }, combine: (x, y) => ({ ${combine} }) })\n`
const sums = 'a: x.a + y.a, b: x.b + y.b'
const use = (name: string, by: string): string =>
  `const ${name} = ${by}.reduce(m, (r) => ({ a: x(r, c) * ${name.length}, b: 1 }))\n`

it('is one for all uses of a declaration', () => {
  const kernel = subject(pair('both', sums), use('p', 'both') + use('qq', 'both'), 'p.a + qq.b')
  expect(structTexts(kernel)).toHaveLength(1)
  const merges = kernel.body.flatMap((s) => (s.kind === 'merge' ? [userMonoidName(s.monoid, kernel)] : []))
  expect(merges).toEqual(['Own0', 'Own0'])
})

it.each([
  ['combine', pair('other', 'a: x.a + y.a, b: x.b + y.b + 0')],
  ['order of parts', pair('other', 'a: y.a + x.a, b: x.b + y.b')],
  ['identity', pair('other', sums, '-0')],
  ['type of a field', pair('other', sums).replace('b: 0', 'b: int(0)')],
])('is another one for another %s', (_, other) => {
  const kernel = subject(pair('both', sums) + other, `${use('p', 'both')}${use('qq', 'other')}`, 'p.a + qq.a')
  expect(ownsOf(kernel)).toHaveLength(2)
  expect(new Set(structTexts(kernel)).size).toBe(2)
})

it('is one for all uses of a recurrence with equal steps', () => {
  const step = (name: string, by: number): string =>
    `const ${name} = fold(m, { h: 0 }, ({ h }, r) => ({ h: h * ${by} + x(r, c) })).h\n`
  expect(structTexts(subject('', step('p', 0.5) + step('q', 0.5), 'p + q'))).toHaveLength(1)
  expect(structTexts(subject('', step('p', 0.5) + step('q', 0.25), 'p + q'))).toHaveLength(2)
})

it('takes memory of a column program once', () => {
  const many = Array.from({ length: 9 }, (_, i) => `v${'v'.repeat(i)}`)
  const total = many.map((name) => `${name}.a`).join(' + ')
  const kernel = subject(pair('both', sums), many.map((name) => use(name, 'both')).join(''), total)
  expect(columnsOf({ kernel, types: {}, dims: {} })).toBeDefined()
})
