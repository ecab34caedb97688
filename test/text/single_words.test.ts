/** Added tokens that are whole words: tokens if no part of a word is adjacent, text elsewhere. */
import { expect, it } from 'vitest'
import { type Tokenizer, tokenizerOf } from '../../src/text/tokenizer.js'
import { refusal } from '../refusal.js'

/** A tokenizer of single characters, with tokens that are added. */
function withAdded(tokens: Readonly<Record<string, object>>, normalizer: object | null = null): Tokenizer {
  const letters = ['<unk>', ...'abcdefghijklmnopqrstuvwxyzé_ !0123456789'].map((letter) => (letter === ' ' ? '▁' : letter))
  const vocab = Object.fromEntries(letters.map((letter, id) => [letter, id]))
  const added = Object.entries(tokens).map(([content, more], i) => ({
    ...{ id: letters.length + i, content, special: false, normalized: false, lstrip: false, rstrip: false, single_word: false },
    ...more,
  }))
  const spaces = { type: 'Replace', pattern: { String: ' ' }, content: '▁' }
  const definition = {
    ...{ version: '1.0', added_tokens: added, pre_tokenizer: null, post_processor: null, decoder: null },
    normalizer: { type: 'Sequence', normalizers: [spaces, ...(normalizer === null ? [] : [normalizer])] },
    model: { type: 'BPE', unk_token: '<unk>', byte_fallback: false, vocab, merges: [] },
  }
  return tokenizerOf(definition, {}, 'tokenizer.json')
}

const words = (tokenizer: Tokenizer, text: string, pair?: string): string => tokenizer.encode(text, { pair }).tokens.join(' ')

it('is a token between non-word characters, and text inside of a word', () => {
  const single = withAdded({ cat: { single_word: true } })
  for (const [text, tokens] of [
    ['cat', 'cat'],
    ['a cat!', 'a ▁ cat !'],
    ['cat cat', 'cat ▁ cat'],
    ['cats', 'c a t s'],
    ['bobcat', 'b o b c a t'],
    ['écat', 'é c a t'],
    ['cat_', 'c a t _'],
    ['cat0 0cat', 'c a t 0 ▁ 0 c a t'],
  ] as const) {
    expect([text, words(single, text)]).toEqual([text, tokens])
  }
  // The twin: an added token without the flag matches everywhere.
  expect(words(withAdded({ cat: {} }), 'cats')).toBe('cat s')
})

it('does not change other tokens, in pairs of texts too', () => {
  const two = withAdded({ cat: { single_word: true }, dog: {} })
  expect(words(two, 'cats dogs')).toBe('c a t s ▁ dog s')
  expect(words(two, 'cats', 'dogs')).toBe('c a t s dog s')
  expect(two.decode(two.encode('cat').ids)).toBe('cat')
})

it('is searched in the normalised text if it is normalised', () => {
  const lower = { type: 'Lowercase' }
  const normalized = withAdded({ Cat: { single_word: true, normalized: true } }, lower)
  expect([words(normalized, 'CAT !'), words(normalized, 'CATS')]).toEqual(['cat ▁ !', 'c a t s'])
  expect(words(withAdded({ Cat: { single_word: true } }, lower), 'CAT')).toBe('c a t')
})

it('is refused if a text has it as both', () => {
  const single = withAdded({ cat: { single_word: true } })
  for (const [text, pair] of [
    ['cat cats', undefined],
    ['cat', 'cats'],
  ] as const) {
    const { code, message } = refusal(() => words(single, text, pair))
    expect([code, message]).toEqual([
      'tokenizer.invalid',
      'tokenizer.json cannot encode a text: a text that has "cat", a single_word, inside of a word and as a word of its own',
    ])
  }
})
