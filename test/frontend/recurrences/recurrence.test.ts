/** Recurrences: their IR, allowed steps, and every refusal. */
import { describe, expect, it } from 'vitest'
import { printKernel } from '../../../src/ir/print.js'
import { fold, foldRow } from '../../../src/lang/index.js'
import { read, refuses } from '../refuse.js'

/** An op that carries something along its rows. */
const op = (
  made: string,
  y = 'row(n, (c) => h.h(c) + x(m, c) + k(m, c))',
): string => `import { fold, foldRow, int, op, row, sum, tanh, tensor } from 'heddle'
export const t = op('t', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n'), k: tensor('i32', 'm n') },
  outputs: { y: tensor('f32', 'm n') },
  body: ({ x, k }, { n }) => (m) => {
    const h = ${made}
    return { y: ${y} }
  },
})
export const used = { fold, foldRow, int, row, sum, tanh }
`
const step = (next: string): string => `foldRow(n, { h: 0 }, «({ h }, t) => ({ h: ${next} })»)`
const plain = (text: string): string => text.replace(/[«»]/g, '')

describe('a fold', () => {
  it('computes values that do not depend on the carried state once', () => {
    const { kernels, diagnostics } = read(op(plain(step('tanh(x(m, t) * h + (x(m, t) > 0 ? h : 1))'))))
    expect(diagnostics.filter(({ code }) => code.startsWith('HED'))).toEqual([])
    const [kernel] = kernels
    expect(kernel === undefined ? '' : printKernel(kernel)).toContain(
      'fold (h_h) = (before_h = 0.0; t < n, taken0 = x[m1, t], taken1 = x[m1, t] > 0.0 ? 1 : 0: tanh(taken0 * before_h + (taken1 !== 0 ? before_h : 1.0)))',
    )
  })

  it('is computed once if both its rows and its last element are read', () => {
    const body = `${plain(step('tanh(x(m, t) * h)'))}\n    const last = fold(n, { h: 0 }, ({ h }, i) => ({ h: tanh(x(m, i) * h) }))`
    const { kernels } = read(op(body, 'row(n, (c) => h.h(c) + k(m, c) + last.h)'))
    expect(kernels[0]?.body.map(({ kind }) => kind)).toEqual(['foldRow', 'reduce', 'storeRow'])
  })

  it('runs from the first element on, and without elements gives its start', () => {
    expect(foldRow(3, { h: 1 }, ({ h }, t) => ({ h: 2 * h + t })).h(2)).toBe(12)
    expect(fold(3, { h: 1 }, ({ h }, t) => ({ h: 2 * h + t }))).toEqual({ h: 12 })
    expect(fold(0, { h: 1 }, () => ({ h: 5 }))).toEqual({ h: 1 })
    expect(() => foldRow(3, { h: 1 }, ({ h }) => ({ h })).h(3)).toThrow('index 3 is outside the row of 3 elements')
  })

  it('must not read at indices that depend on the carried state', () => {
    refuses(op(step('x(m, h > 0 ? t : 0)')), {
      code: 'row',
      message: 'x[m1, before_h > 0.0 ? t : 0] is read at an index that depends on carried values',
      hint: 'what a step reads is loaded before the steps run: read a place that follows from the index, and choose with condition ? a : b',
    })
    refuses(op(step('sum(n, (j) => x(m, j) * h)')), {
      code: 'row',
      message: 'the sum over j in the step reads carried values',
      hint: 'reduce before the fold, or write the terms out',
    })
    refuses(op(step('h > 0 ? x(m, k(m, t)) : h')), {
      code: 'branch',
      message: 'x[m1, k[m1, t]] is in a branch that depends on carried values, but is computed for every element',
      hint: 'make it a row before the fold, row(n, (t) => ...), which is defined for every element',
    })
  })

  it('carries the fields of its start, floats by default', () => {
    refuses(op('foldRow(n, { h: int(0) }, «({ h }, t) => ({ h: h + x(m, t) })»)'), {
      code: 'dtype',
      message: 'field h starts as an integer, the step returns a float',
      hint: 'use toInt, or start with a float',
    })
    refuses(op('foldRow(n, «{ h: (k(m, 0) > 0) as unknown as number }», ({ h }) => ({ h }))'), {
      code: 'dtype',
      message: 'field h starts with a boolean',
      hint: 'carry an integer: condition ? int(1) : int(0)',
    })
  })

  it('is read at the index of a loop over its row, and is defined at row level', () => {
    refuses(op(plain(step('x(m, t) * h')), 'row(n, (c) => h.h(«n - 1 - c») + k(m, c))'), {
      code: 'row',
      message: 'h_h is a row that a fold makes, read at n - 1 - c',
      hint: 'read it at the index of a loop over the row: row(n, (c) => h.h(c)); the last element is what fold returns; for any other order return the row, and read it in another op',
    })
    const copied = `${plain(step('x(m, t) * h'))}\n    const copy = row(n, (c) => h.h(c))\n    const twice = row(n, (c) => 2 * copy(c))`
    refuses(op(copied, 'row(n, (c) => twice(«n - 1 - c») + k(m, c))'), {
      code: 'row',
      message: 'twice is computed from h_h, a row that a fold makes, read at n - 1 - c',
      hint: 'read it at the index of a loop over the row: row(n, (c) => twice(c)); the last element is what fold returns; for any other order return the row, and read it in another op',
    })
    refuses(op(plain(step('x(m, t) * h')), 'row(n, (c) => sum(n, (j) => h.h(«j»)) + k(m, c))'), {
      code: 'row',
      message: 'h_h is a row that a fold makes, read at j, the index of a loop inside an element',
      hint: 'read it at the index of a loop over the row: row(n, (c) => h.h(c)); the last element is what fold returns; for any other order return the row, and read it in another op',
    })
    refuses(op('x(m, 0) + k(m, 0)', 'row(n, (c) => «fold(n, { s: 0 }, ({ s }, j) => ({ s: s + x(m, j) }))».s + h + x(m, c))'), {
      code: 'row',
      message: 'a fold cannot be made inside an element',
      hint: 'take the index of the element with those of the rows, (m, c) => ..., so that each has a fold of its own',
    })
  })

  it('is refused in ops that need a block of threads', () => {
    const cut = 'threshold(n, 3, (c) => x(m, c), (c) => 1)'
    const both = op(`${plain(step('x(m, t) * h'))}\n    const least = ${cut}`, 'row(n, (c) => h.h(c) + least + k(m, c))')
    refuses(both.replace("op('t'", "op(«'t'»").replace('tensor }', 'tensor, threshold }'), {
      code: 'row',
      message: 'the op carries something along a row, as a warp or a thread does, and makes a threshold, as a block does',
      hint: 'make it two ops',
    })
  })

  it('has its fields checked by the TypeScript compiler', () => {
    const unused = (): void => {
      // @ts-expect-error the step returns another field
      fold(3, { h: 0 }, ({ h }) => ({ g: h }))
      // @ts-expect-error nothing of that name is carried
      fold(3, { h: 0 }, ({ g }) => ({ h: g }))
      // @ts-expect-error a field is missing
      foldRow(3, { h: 0, g: 0 }, ({ h }) => ({ h }))
      // @ts-expect-error a row, not a number
      foldRow(3, { h: 0 }, ({ h }) => ({ h })).h + 1
      // @ts-expect-error a number, not a row
      fold(3, { h: 0 }, ({ h }) => ({ h })).h(2)
    }
    expect(unused).toBeTypeOf('function')
  })
})
