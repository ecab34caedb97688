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
      message: 'flat: the size of dimension b is unknown: only b*s is 16 by x [16, 3]',
      hint: 'set it when flat is loaded: load(flat, { dims: { b: ... } })',
    })
  })
  it('is not a word of a dimension that nothing names', () =>
    expect(refusal(() => new Sizes('flat', 'load').all(['b']))).toMatchObject({
      code: 'load.dims',
      message: 'flat: the size of dimension b is unknown',
      hint: 'set it: { dims: { b: ... } }',
    }))
})
