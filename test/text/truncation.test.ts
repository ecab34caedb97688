/** Texts truncated from the side that the tokenizer's files name. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type Tokenizer, tokenizerOf } from '../../src/text/tokenizer.js'
import type { Truncation } from '../../src/text/truncation.js'
import { exampleModel } from '../models/fixtures.js'
import { refusal } from '../refusal.js'

const definition: object = JSON.parse(await readFile(join(exampleModel, 'tokenizer.json'), 'utf8'))
const of = (config: object, more: object = {}): Tokenizer => tokenizerOf({ ...definition, ...more }, config, 'tokenizer.json')

const [first, second] = ['god was stone and pillar', 'the beginning of god']
const cut = (tokenizer: Tokenizer, most: number, how: Truncation['how'], pair?: string): string =>
  tokenizer.encode(first, { pair, truncate: { how, most } }).tokens.join(' ')

describe('texts that are too long', () => {
  const [right, left] = [of({}), of({ truncation_side: 'left' })]

  it('lose their ends, or their beginnings if truncation_side is left', () => {
    expect(right.encode(first).tokens.join(' ')).toBe('[CLS] god was stone and pill ##ar [SEP]')
    expect(cut(right, 5, 'longest_first')).toBe('[CLS] god was stone [SEP]')
    expect(cut(left, 5, 'longest_first')).toBe('[CLS] and pill ##ar [SEP]')
    expect(cut(left, 5, 'only_first')).toBe('[CLS] and pill ##ar [SEP]')
    expect(cut(of({ truncation_side: 'right' }), 5, 'longest_first')).toBe(cut(right, 5, 'longest_first'))
    // A text that fits is not cut.
    expect(cut(left, 8, 'longest_first')).toBe(cut(right, 8, 'longest_first'))
  })

  it('of pairs too, each by itself, with their types', () => {
    expect(cut(right, 6, 'longest_first', second)).toBe('god was stone the beginning of')
    expect(cut(left, 6, 'longest_first', second)).toBe('and pill ##ar beginning of god')
    expect(cut(left, 8, 'only_second', second)).toBe('god was stone and pill ##ar of god')
    expect(cut(left, 8, 'only_first', second)).toBe('stone and pill ##ar the beginning of god')
    const { types } = left.encode(first, { pair: second, truncate: { how: 'longest_first', most: 6 } })
    expect(types).toEqual([0, 0, 0, 1, 1, 1])
  })

  it('are truncated as in tokenizer.json if its configuration states nothing', () => {
    const saved = { truncation: { direction: 'Left', max_length: 5, strategy: 'LongestFirst', stride: 0 } }
    expect(cut(of({}, saved), 5, 'longest_first')).toBe(cut(left, 5, 'longest_first'))
    expect(cut(of({ truncation_side: 'right' }, saved), 5, 'longest_first')).toBe(cut(right, 5, 'longest_first'))
    expect(cut(of({}, { truncation: null }), 5, 'longest_first')).toBe(cut(right, 5, 'longest_first'))
  })

  it('with an unknown side are refused when the tokenizer is loaded', () => {
    for (const side of ['middle', 3, null]) {
      const { code, message } = refusal(() => of({ truncation_side: side }))
      expect([code, message]).toEqual([
        'tokenizer.invalid',
        `tokenizer.json cannot load: truncation_side is ${JSON.stringify(side)}, expected "left" or "right"`,
      ])
    }
  })
})
