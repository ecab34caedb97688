/** Normalisers that a tokenizer.json has compiled: its own rules, as Hugging Face's tokenizers apply them. */
import { expect, it } from 'vitest'
import { tokenizerOf } from '../../src/text/tokenizer.js'
import { refusal } from '../refusal.js'
import { charsmapBytes } from './sentencepiece/files.js'

const letters = [...'abcfiéeＡ①1', '\u0302', '\u00AD', 'カ', '\u3099', 'ｶ', 'ﾞ']

const open = (normalizer: object) =>
  tokenizerOf(
    {
      added_tokens: [],
      ...{ normalizer, pre_tokenizer: null, post_processor: null, decoder: null },
      model: { type: 'Unigram', unk_id: 0, vocab: ['<unk>', ...letters].map((text) => [text, -1]) },
    },
    {},
    'tokenizer.json',
  )
const compiled = (rules: Readonly<Record<string, string>>): object => ({
  type: 'Precompiled',
  precompiled_charsmap: charsmapBytes(rules).toString('base64'),
})
const normal = (normalizer: object, text: string): string => {
  const { tokens } = open({ type: 'Sequence', normalizers: [normalizer] }).encode(text)
  return tokens.join('')
}

it('follow the rules of the file, and no others', () => {
  const rules = { Ａ: 'a', ﬁ: 'fi', 'e\u0301': 'é' }
  expect(normal(compiled(rules), 'Ａﬁcb')).toBe('aficb')
  // A circled digit is a digit by other rules, and a soft hyphen stays.
  expect(normal(compiled(rules), '①\u00ADe\u0301')).toBe('①\u00ADé')
  expect(normal({ type: 'Precompiled', precompiled_charsmap: '' }, '①Ａ')).toBe('①Ａ')
})

it('take short graphemes whole and the shortest rule, and longer ones by characters', () => {
  expect(normal(compiled({ e: 'i', 'e\u0302': 'a' }), 'e\u0302b')).toBe('ib')
  const halves = { ｶ: 'カ', ﾞ: '\u3099', ｶﾞ: 'b' }
  expect(normal(compiled(halves), 'ｶﾞ')).toBe('カ\u3099')
})

it('are refused where they are damaged', () => {
  const damaged = { type: 'Precompiled', precompiled_charsmap: Buffer.from('damaged').toString('base64') }
  expect(refusal(() => open(damaged))).toMatchObject({ code: 'tokenizer.invalid', message: expect.stringContaining('damaged') })
})
