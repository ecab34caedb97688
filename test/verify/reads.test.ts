/** Reads outside of a tensor that follow from facts: the reports about them. */
import { describe, expect, it } from 'vitest'
import { findingError, usageError } from '../../src/errors.js'
import { locatingReads } from '../../src/verify/reads.js'
import { refusal } from '../refusal.js'

const none = { dims: {}, attrs: {}, results: {}, loops: [] }
const outside = (): never => {
  throw findingError('evaluate.bounds', 'logits[0, 1] is outside its shape (1, 1)')
}

describe('a read outside of a tensor', () => {
  it('names the index that the author may have meant by a domain that ends at a dimension', () => {
    const facts = { ...none, inputs: { label: { from: [-1], to: ['v'] } } }
    expect(refusal(() => locatingReads(facts, outside))).toMatchObject({
      code: 'evaluate.bounds',
      message:
        "logits[0, 1] is outside its shape (1, 1): label may be v itself by its fact; of an index of v elements write label: { index: 'v', also: [-1] }",
    })
  })

  it('excludes -1 where it is not allowed, and keeps other allowed values', () => {
    const hintOf = (domain: object) =>
      refusal(() => locatingReads({ ...none, inputs: { label: { to: ['v'], ...domain } } }, outside)).hint
    expect(hintOf({ from: [0] })).toContain("write label: { index: 'v' }")
    expect(hintOf({ from: [0], also: [-100] })).toContain("write label: { index: 'v', also: [-100] }")
  })

  it('is unchanged if no domain ends at a dimension, as are other errors', () => {
    const facts = { ...none, inputs: { label: { from: [0], to: [['add', 'v', -1] as const] }, flag: { to: [1] } } }
    expect(refusal(() => locatingReads({ ...none, inputs: { flag: facts.inputs.flag } }, outside)).hint).toBeUndefined()
    const other = (): never => {
      throw usageError('run.dim', 'no extent')
    }
    expect(refusal(() => locatingReads({ ...none, inputs: { label: { to: ['v'] } } }, other)).code).toBe('run.dim')
  })
})
