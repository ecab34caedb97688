/** Masks of cases on the host: padding is cut off, any other mask becomes a mask of pairs, and invalid masks are refused. */
import { describe, expect, it } from 'vitest'
import { batchMask, batchOrder, expectTokens, keptTokens, withoutMasks } from '../../src/models/parts/masks.js'
import { checkCases, type TokenCase } from '../../src/models/parts/token_cases.js'
import { refusal } from '../refusal.js'

const ids = [7, 8, 9, 10]
const read = (attentionMask: TokenCase['attentionMask'], more: Partial<TokenCase> = {}) => {
  const [found] = withoutMasks([{ inputIds: ids, attentionMask, ...more }])
  return found && { ids: found.item.inputIds, pairs: found.pairs && [...found.pairs] }
}
const rows = (mask: readonly number[]): number[][] => ids.map(() => [...mask])

describe('a mask of keys', () => {
  it('is the length of the case if its ones come first', () => {
    expect(read(undefined)).toEqual({ ids, pairs: undefined })
    expect(read([1, 1, 1, 1])).toEqual({ ids, pairs: undefined })
    expect(read([1, 1, 1, 0])).toEqual({ ids: [7, 8, 9], pairs: undefined })
    expect(read([1, 0, 0, 0])).toEqual({ ids: [7], pairs: undefined })
    expect(read(rows([1, 1, 0, 0]))).toEqual({ ids: [7, 8], pairs: undefined })
  })

  it('takes the types of the tokens that are left', () => {
    const [found] = withoutMasks([{ inputIds: ids, typeIds: [0, 0, 1, 1], attentionMask: [1, 1, 1, 0] }])
    expect(found?.item).toEqual({ inputIds: [7, 8, 9], typeIds: [0, 0, 1] })
  })

  it('is a mask of pairs if it has a hole, or padding in front', () => {
    expect(read([1, 0, 1, 0])).toEqual({ ids: [7, 8, 9], pairs: [1, 0, 1, 1, 0, 1, 1, 0, 1] })
    expect(read([0, 1, 0, 0])).toEqual({ ids: [7, 8], pairs: [0, 1, 0, 1] })
  })

  it('keeps all tokens if it has no ones', () => {
    expect(read([0, 0, 0, 0])).toEqual({ ids, pairs: Array(16).fill(0) })
  })
})

describe('a mask of pairs', () => {
  it('is unchanged if rows differ', () => {
    const causal = ids.map((_, s) => ids.map((_, t) => (t <= s ? 1 : 0)))
    expect(read(causal)).toEqual({ ids, pairs: causal.flat() })
    const last = [...rows([1, 1, 0, 0]).slice(1), [0, 0, 0, 0]]
    expect(read(last)).toEqual({ ids, pairs: last.flat() })
  })

  it('of a batch is whole for cases without one, and empty beyond the tokens', () => {
    const batch = withoutMasks([{ inputIds: [1, 2] }, { inputIds: [1, 2, 3], attentionMask: [0, 1, 1] }])
    expect([...batchMask(batch, 4)]).toEqual([
      ...[1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
      ...[0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0],
    ])
  })
})

describe('kept tokens', () => {
  it('are those that some token attends, and come first in the order of a batch', () => {
    const alone = ids.map((_, s) => ids.map((_, t) => (t === 1 ? 0 : s === 1 ? (t === 3 ? 1 : 0) : t === s ? 1 : 0)))
    const batch = withoutMasks([
      { inputIds: ids, attentionMask: alone },
      { inputIds: [5] },
      { inputIds: ids, attentionMask: [0, 1, 0, 1] },
    ])
    expect(batch.map(keptTokens)).toEqual([[0, 2, 3], [0], [1, 3]])
    expect([...batchOrder(batch, 5)]).toEqual([0, 2, 3, 0, 0, 0, 0, 0, 0, 0, 1, 3, 0, 0, 0])
  })
})

describe('refusals', () => {
  it.each([
    [[1, 1, 1], 'case 0 has 4 tokens and a mask of 3'],
    [[1, 2, 1, 1], 'case 0: attentionMask[1] is 2, expected 1 for a key that is kept, or 0'],
    [[1, 1, true, 1], 'attentionMask[2] is true'],
    [[[1, 1, 1, 1], 1, [1, 1, 1, 1], [1, 1, 1, 1]], 'attentionMask[1] is not a row, but others are'],
    [[[1, 1, 1, 1], [1], [1, 1, 1, 1], [1, 1, 1, 1]], 'case 0 has 4 tokens, and attentionMask[1] has 1'],
    [
      [
        [1, 1, 1, 1],
        [1, 1, 1, 1],
        [1, 1, 0.5, 1],
        [1, 1, 1, 1],
      ],
      'attentionMask[2][2] is 0.5',
    ],
  ])('of %j', (mask, text) => {
    const found = refusal(() => read(mask as number[]))
    expect(found).toMatchObject({ code: 'run.mask', message: expect.stringContaining(text), hint: expect.any(String) })
  })

  it('of a mask that is not an array, a model that supports none, and one that removes every token', () => {
    const limits = { positions: 16, vocab: 32 }
    const none = [{ inputIds: ids, attentionMask: '1111' as unknown as number[] }]
    expect(
      refusal(() =>
        checkCases(
          limits,
          withoutMasks(none).map(({ item }) => item),
          1,
        ),
      ),
    ).toMatchObject({ code: 'run.case' })
    const masked = [{ inputIds: ids }, { inputIds: ids, attentionMask: [1, 0, 1, 1] }]
    expect(refusal(() => checkCases(limits, masked, 1)).message).toContain('case 1 has an attention mask')
    const removed = withoutMasks([{ inputIds: ids, attentionMask: [0, 0, 0, 0] }])
    expect(refusal(() => expectTokens(removed))).toMatchObject({
      code: 'run.mask',
      message: 'case 0: its mask removes every token',
    })
    expectTokens(withoutMasks([...masked, { inputIds: ids, attentionMask: [0, 0, 0, 1] }]))
  })

  it('leaves other faults of a case to the check of cases', () => {
    const wrong = [null, { attentionMask: [1] }, { inputIds: 'x', attentionMask: [1] }] as unknown as TokenCase[]
    expect(withoutMasks(wrong).map(({ item }) => item)).toEqual(wrong)
  })
})
