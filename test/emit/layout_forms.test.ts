/** Layouts as element counts: forms of sizes and strides, and layouts without any. */
import { describe, expect, it } from 'vitest'
import { layoutForms } from '../../src/emit/manifest/layout_forms.js'
import { call, dim, i32, index } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import { evaluateCount } from '../../src/ir/facts/facts.js'
import { rowMajor } from '../../src/ir/layout.js'

const formOf = (offset: Expr, size: Expr) =>
  layoutForms([{ tensors: [{ layout: { name: 'own', axes: ['r', 'c'], offset, size } }] }]).own

const [r, c, rows, columns] = [index('r'), index('c'), dim('r'), dim('c')]
const above = call('add', columns, i32(31))
const roundings: Readonly<Record<string, Expr>> = {
  quotient: call('mul', call('idiv', above, i32(32)), i32(32)),
  shifts: call('shiftLeft', call('shiftRight', above, i32(5)), i32(5)),
  mask: call('bitAnd', above, i32(-32)),
}

describe('a layout', () => {
  it.each(Object.keys(roundings))('with rows padded by a %s has a size and strides', (name) => {
    const pitch = roundings[name] ?? i32(0)
    const form = formOf(call('add', call('mul', r, pitch), c), call('mul', rows, pitch))
    const at = (sizes: { readonly r: number; readonly c: number }) =>
      [form?.size, ...(form?.strides ?? [])].map((count) => count !== undefined && evaluateCount(count, sizes))
    expect(form?.axes).toEqual(['r', 'c'])
    expect(at({ r: 3, c: 33 })).toEqual([192, 64, 1])
    expect(at({ r: 70_000, c: 32 })).toEqual([2_240_000, 32, 1])
  })

  it('of panels has a size and no strides', () => {
    const panel = call('mul', call('shiftRight', c, i32(5)), call('mul', rows, i32(32)))
    const offset = call('add', panel, call('add', call('mul', r, i32(32)), call('bitAnd', c, i32(31))))
    const form = formOf(offset, call('mul', roundings.quotient ?? rows, rows))
    expect(form?.strides).toBeUndefined()
    expect(form?.size).toBeDefined()
  })

  it('with a conditional size has no form, and rows need none', () => {
    const size = call('mul', rows, call('select', call('lt', columns, i32(32)), i32(32), columns))
    expect(formOf(call('add', call('mul', r, columns), c), size)).toBeUndefined()
    // Subtracting a value that is not a count must not give the minuend.
    const less = call('sub', call('mul', rows, i32(64)), call('select', call('lt', columns, i32(32)), i32(0), i32(1)))
    expect(formOf(call('add', call('mul', r, columns), c), less)).toBeUndefined()
    expect(layoutForms([{ tensors: [{ layout: rowMajor(['r', 'c']) }] }])).toEqual({})
  })
})
