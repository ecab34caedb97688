/** Sizes of a model that follow only from products. */
import { describe, expect, it } from 'vitest'
import { parseShape } from '../../../src/ir/shape.js'
import { Sizes } from '../../../src/runtime/api/sizes.js'
import { refusal } from '../../refusal.js'

describe('an extent that is a product', () => {
  it('gives a factor if the other is known', () => {
    const given = new Sizes('flat', 'load')
    given.give(['b', 's', 'n'], { b: 2 })
    const sizes = new Sizes('flat', 'run', given)
    sizes.bind('x', parseShape('b*s n'), [16, 3])
    expect(sizes.all(['b', 's', 'n'])).toEqual({ b: 2, s: 8, n: 3 })
  })
  it('is reported if neither is, with the call that sets one', () => {
    const sizes = new Sizes('flat', 'run')
    sizes.bind('x', parseShape('b*s n'), [16, 3])
    expect(refusal(() => sizes.all(['b', 's', 'n']))).toMatchObject({
      code: 'run.dims',
      message: 'flat: the size of dimension b is unknown: only b*s is 16 according to x [16, 3]',
      hint: 'set it when flat is loaded: load(flat, { dims: { b: ... } })',
    })
  })
  it('has the typical factors that give it, and is reported for another product', () => {
    const typical = { b: 2, s: 8 }
    const solved = (rows: number) => {
      const sizes = new Sizes('flat', 'run')
      sizes.bind('x', parseShape('2*b*s n'), [rows, 3])
      sizes.assumeTypical(typical)
      return sizes.all(['b', 's', 'n'])
    }
    expect(solved(32)).toEqual({ b: 2, s: 8, n: 3 })
    for (const rows of [16, 64, 96]) expect(refusal(() => solved(rows)).code).toBe('run.dims')
    const half = new Sizes('flat', 'run')
    half.bind('x', parseShape('b*s n'), [16, 3])
    half.assumeTypical({ s: 16 })
    expect(refusal(() => half.all(['b'])).code).toBe('run.dims')
    const given = new Sizes('flat', 'load')
    given.give(['b', 's'], { b: 4 })
    const other = new Sizes('flat', 'run', given)
    other.bind('x', parseShape('b*s'), [16])
    other.assumeTypical(typical)
    expect(other.all(['b', 's'])).toEqual({ b: 4, s: 4 })
  })
  it('is not a word of a dimension that nothing names', () =>
    expect(refusal(() => new Sizes('flat', 'load').all(['b']))).toMatchObject({
      code: 'load.dims',
      message: 'flat: the size of dimension b is unknown',
      hint: 'set it: { dims: { b: ... } }',
    }))
})
