/** Reading of thresholds: their IR, and refusals. */
import { describe, expect, it } from 'vitest'
import { printKernel } from '../../../src/ir/print.js'
import { read, refuses } from '../refuse.js'

const op = (result: string): string => `import { op, ${result.includes('row(') ? 'row, ' : ''}tensor, threshold } from 'heddle'
export const t = op('t', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n'), ids: tensor('i32', 'm') },
  outputs: { y: tensor('f32', 'm') },
  body: ({ x, ids }, { n }) => (m) => {
    ${result}
  },
})
`
const used = 'x(m, 0) + ids(m)'

describe('a threshold', () => {
  it('is a scalar of the row, with floats for integers', () => {
    const { kernels, diagnostics } = read(op('const t = threshold(n, ids(m), (c) => x(m, c), (k) => k)\n    return { y: t + 1 }'))
    expect(diagnostics).toEqual([])
    expect(kernels.map(printKernel).join('')).toContain(
      '  let t: f32 = threshold(c < n: x[m1, c] weighs toFloat(c)) of toFloat(ids[m1])\n',
    )
  })

  it('takes rows for its functions', () => {
    const { kernels } = read(op('const v = row(n, (c) => x(m, c))\n    return { y: threshold(n, 1, v, v) + ids(m) }'))
    expect(kernels.map(printKernel).join('')).toContain('let threshold0: f32 = threshold(i < n: v[i] weighs v[i]) of 1.0')
  })

  it('is refused without weights', () =>
    refuses(op(`return { y: «threshold(n, 1, (c) => x(m, c))» + ${used} }`), {
      code: 'arity',
      message: 'threshold takes 4 arguments, 3 given',
      hint: 'write threshold(n, target, (c) => x(m, c), (c) => 1)',
    }))

  it('is refused for a number as its weights', () =>
    refuses(op(`return { y: threshold(n, 1, (c) => x(m, c), «1») + ${used} }`), {
      code: 'row',
      message: 'threshold takes a row or a function of an index, 1 is an integer',
      hint: 'write threshold(n, target, (c) => x(m, c), (c) => 1)',
    }))

  it('is refused for booleans', () =>
    refuses(op(`return { y: threshold(n, 1, (c) => x(m, c), «(c) => x(m, c) > 0») + ${used} }`), {
      code: 'dtype',
      message: 'threshold takes numbers, (c) => x(m, c) > 0 is a boolean',
      hint: 'write condition ? 1 : 0',
    }))

  it('is refused for a fractional length', () =>
    refuses(op(`return { y: threshold(«0.5», n, (c) => x(m, c), () => 1) + ${used} }`), {
      code: 'index',
      message: 'length of threshold: 0.5 is a float',
      hint: 'indices and lengths are integers: use idiv, toInt or an integer tensor',
    }))

  it('is refused in a branch', () =>
    refuses(op('return { y: ids(m) > 0 ? «threshold(n, 1, (c) => x(m, c), () => 1)» : 0 }'), {
      code: 'row',
      message: 'a threshold cannot be made inside an element or a branch',
      hint: 'make it a const at row level, before the row that uses it',
    }))
})
