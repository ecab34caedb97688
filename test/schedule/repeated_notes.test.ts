/** Notes on values that points share and that each computes again: of every construct, and none where a launch in front computes them once. */
import { expect, it } from 'vitest'
import { mapKernel } from '../../src/schedule/map.js'
import { notesOf } from '../../src/schedule/notes/notes.js'
import { read } from '../frontend/refuse.js'

/** Notes of an op over `x: m n`, whose result is for each element. */
function notes(statements: string, value: string, more = ''): readonly string[] {
  const text = `import { argsort, fold, histogram, monoid, op, scan, tensor, toInt, topK } from 'heddle'
const pair = monoid({ identity: { a: 0, b: 0 }, combine: (x, y) => ({ a: x.a + y.a, b: x.b + y.b }) })
export const subject = op('subject', { dims: ['m', 'n'], inputs: { x: tensor('f32', 'm n') }, outputs: { y: tensor('f32', 'm n') }${more},
  body: ({ x }, { m, n }) => (i, j) => {
    ${statements}
    return { y: ${value} }
  } })`
  const [kernel] = read(text).kernels
  if (kernel === undefined) throw new Error('the spec is refused')
  return notesOf(mapKernel({ kernel, types: {}, dims: {} })).flatMap(({ kind, message }) =>
    kind === 'recomputed' ? [message] : [],
  )
}

const counts = 'const h = histogram(16, n, (c) => toInt(x(i, c)))'
const ranking = 'const best = topK(3, n, (c) => x(i, c))'

it.each([
  ['a histogram', counts, 'x(i, j) * h(toInt(x(i, j)))'],
  ['a ranking', ranking, 'x(i, j) * best.values(toInt(x(i, j)))'],
])('appears for %s that is read at places of the element', (words, statements, value) => {
  const [note, ...others] = notes(statements, value)
  expect(note).toContain(
    `${words} of n elements, is the same for every j and is recomputed for each: n times the work; return it from a separate op`,
  )
  expect(others).toEqual([])
})

it.each([
  ['a histogram that is read at a number', counts, 'x(i, j) * h(2)'],
  ['a ranking that is read at a number', ranking, 'x(i, j) - best.values(2)'],
  ['a recurrence', 'const f = fold(n, { h: 0 }, ({ h }, c) => ({ h: h * 0.5 + x(i, c) }))', 'x(i, j) - f.h'],
  ['a reduction by a monoid', 'const s = pair.reduce(n, (c) => ({ a: x(i, c), b: 1 }))', 'x(i, j) * (s.a + s.b)'],
  ['a ranking of the element itself', 'const best = topK(3, n, (c) => x(i, c) * x(i, j))', 'best.values(2)'],
])('does not appear for %s', (_, statements, value) => {
  expect(notes(statements, value)).toEqual([])
})
