/** Relations of extents that reads of a body want, and which facts to state for them. */
import { describe, expect, it } from 'vitest'
import { unstatedRelations } from '../../src/ir/facts/relations.js'
import { read } from '../frontend/refuse.js'

/** Requirement of a body over `x: m p` for p. */
function wanted(body: string, { inputs = '', dims = '', facts = '' } = {}) {
  const { kernels } = read(`import { idiv, op, sum, tensor } from 'heddle'
export const t = op('t', {
  dims: ['m', 'n', 'w', 'p'${dims}],
  inputs: { x: tensor('f32', 'm p'), z: tensor('f32', 'n w')${inputs} },
  outputs: { y: tensor('f32', 'm n') },
  facts: { ${facts} },
  body: ({ x, z }, { n, w }) => (m, c) => ({ y: z(c, 0) + ${body} }),
})`)
  const [kernel] = kernels
  if (kernel === undefined) throw new Error('no kernel')
  return unstatedRelations(kernel).flatMap(({ tensor, dim, size, fact }) => (tensor === 'x' ? [`${dim}: ${size}, ${fact}`] : []))
}

describe('requirements of reads', () => {
  it.each([
    ['x(m, c + n) + x(m, c + 0)', ["p: 2*n, '2*n'"]],
    ['sum(w, (i) => x(m, c * w + i))', ["p: n*w, 'n*w'"]],
    ['x(m, c + 2)', ["p: n+2, 'n+2'"]],
    ['sum(w, (i) => x(m, c + i))', ["p: n+w-1, { atLeast: 'n+w' }"]],
    ['x(m, idiv(c, 32))', ["n: 32*p, '32*p'"]],
    ['x(m, c >> 3)', ["n: 8*p, '8*p'"]],
    ['x(m, idiv(c, w))', ["n: w*p, 'w*p'"]],
    ['x(m, 2 * c + 1)', ["p: 2*n, '2*n'"]],
  ])('%s', (body, found) => expect(wanted(body)).toEqual(found))
  it('are empty if a fact states them, or for indices of another form', () => {
    expect(wanted('x(m, c + n)', { facts: "p: '2*n'" })).toEqual([])
    expect(wanted('x(m, c + n)', { facts: "p: { atLeast: '2*n' }" })).toEqual([])
    expect(wanted('x(m, idiv(c, 2))', { facts: "n: '2*p'" })).toEqual([])
    expect(wanted('x(m, idiv(c + w, 2))')).toEqual([])
  })
})
