/**
 * Texts split by SentencePiece models, against the definitions of the algorithms: of all segmentations the one with the largest sum, and repeatedly
 * the best merge of neighbours.
 */
import { expect, it } from 'vitest'
import { byteText, parsePieceModel } from '../../../src/text/sentencepiece/model.js'
import { type PieceProcessor, processorOf } from '../../../src/text/sentencepiece/processor.js'
import { refusal } from '../../refusal.js'
import { bytesField, intField, type ModelFixture, modelBytes, type PieceFixture } from './files.js'

const unknown: PieceFixture = { text: '<unk>', type: 2 }
const controls: readonly PieceFixture[] = [unknown, { text: '<s>', type: 3 }, { text: '</s>', type: 3 }]
const scored = (scores: Readonly<Record<string, number>>): PieceFixture[] =>
  Object.entries(scores).map(([text, score]) => ({ text, score }))
const open = (model: ModelFixture): PieceProcessor => processorOf(parsePieceModel(modelBytes(model), 'a.model'))

const words = {
  '▁': -3,
  a: -4,
  b: -4.5,
  c: -5,
  ab: -6.25,
  ba: -7,
  abc: -9,
  '▁a': -5.5,
  '▁ab': -8,
  'b▁': -4.25,
  '🙂': -6,
  cc: -9.5,
}

/** The best segmentation of a text into pieces and unknown characters, by trying each. */
function bestWay(text: string, scores: Readonly<Record<string, number>>): string[] {
  const worst = Math.min(...Object.values(scores)) - 10
  const ways = (rest: string): { sum: number; way: string[] }[] => {
    if (rest === '') return [{ sum: 0, way: [] }]
    const first = String.fromCodePoint(rest.codePointAt(0) ?? 0)
    const heads = Object.keys(scores).filter((piece) => rest.startsWith(piece))
    const all = heads.includes(first) ? heads : [...heads, first]
    return all.flatMap((head) =>
      ways(rest.slice(head.length)).map(({ sum, way }) => ({ sum: sum + (scores[head] ?? worst), way: [head, ...way] })),
    )
  }
  return ways(text).reduce((best, each) => (each.sum > best.sum ? each : best)).way
}

it('splits texts so that the sum of scores is maximal', () => {
  const { pieces } = open({ pieces: [...controls, ...scored(words)] })
  for (const text of ['abcab', 'a b', 'ab ab abc', 'cccab🙂a', 'bab  ba', 'b', 'abcabcba b']) {
    expect(pieces(text), text).toEqual(bestWay(`▁${text.replace(/ +/g, '▁')}`, words))
  }
})

it('joins the unknown to one piece, or writes it as bytes', () => {
  const pieces = [...controls, ...scored(words)]
  expect(open({ pieces }).pieces('a日本b')).toEqual(['▁a', '日本', 'b'])
  const bytes = Array.from({ length: 256 }, (_, byte) => ({ text: byteText(byte), type: 6 }))
  const fallback = open({ pieces: [...pieces, ...bytes], byteFallback: true })
  expect(fallback.pieces('a日b')).toEqual(['▁a', '<0xE6>', '<0x97>', '<0xA5>', 'b'])
  expect(fallback.text(['▁a', '<0xE6>', '<0x97>', '<0xA5>', '<0xE6>', 'b'])).toBe('a日\uFFFDb')
  const without = modelBytes({ pieces: [...pieces, ...bytes.slice(1)], byteFallback: true })
  expect(refusal(() => parsePieceModel(without, 'a.model')).message).toContain('has no piece <0x00>')
})

it('matches no control piece, byte or unused piece in text, but every user-defined symbol', () => {
  const more: PieceFixture[] = [
    { text: '<sep>', type: 4 },
    { text: 'aa', score: -0.5, type: 5 },
  ]
  const { pieces, text } = open({ pieces: [...controls, ...more, ...scored({ ...words, '<': -9, s: -9, '>': -9 })] })
  expect(pieces('a<s>aa')).toEqual(['▁a', '<', 's', '>', 'a', 'a'])
  expect(pieces('a<sep>b')).toEqual(['▁a', '<sep>', 'b'])
  expect(text(['<s>', '▁a', '▁ab', '<unk>', '</s>'])).toBe('a ab ⁇ ')
  // Text without a piece is unchanged.
  expect(text(['▁a', '▁ü'])).toBe('a▁ü')
})

/** Merges by definition: repeatedly the best pair of neighbours, of equals the leftmost. */
function joined(text: string, scores: Readonly<Record<string, number>>): string[] {
  const parts = [...text]
  for (;;) {
    const sums = parts.slice(1).map((part, i) => scores[`${parts[i]}${part}`] ?? Number.NEGATIVE_INFINITY)
    const best = Math.max(...sums)
    if (!Number.isFinite(best)) return parts
    const at = sums.indexOf(best)
    parts.splice(at, 2, `${parts[at]}${parts[at + 1]}`)
  }
}

it('joins neighbours by their scores', () => {
  const scores = { '▁': -20, a: -21, b: -22, c: -23, ab: 0, ba: -1, abab: -2, '▁a': -3, aab: -4, bab: -4, cab: -5 }
  const { pieces } = open({ kind: 2, pieces: [...controls, ...scored(scores)] })
  for (const text of ['abab', 'babab', 'aab', 'cabab', 'a ab', 'bbaabcab', 'ccc']) {
    expect(pieces(text), text).toEqual(joined(`▁${text.replaceAll(' ', '▁')}`, scores))
  }
  const unused: PieceFixture[] = [
    { text: 'bab', score: 1, type: 5 },
    { text: 'a.b', type: 4 },
  ]
  const own = open({ kind: 2, pieces: [...controls, ...unused, ...scored({ '▁': -9, a: -9, b: -9, ba: 2, 'b▁': -3 })] })
  expect(own.pieces('bab')).toEqual(['▁', 'ba', 'b'])
  expect(own.pieces('ba.bb')).toEqual(['▁', 'b', 'a.b', 'b'])
})

const rules = { Ａ: 'a', ﬁ: 'fi', 'e\u0301': 'é', '\u00A0': ' ', '\u200B': '', '\n': ' ', e: 'e', '㌀': 'ab cd' }

it('follows the rules of normalisation, the longest first', () => {
  const { pieces } = open({ pieces: [unknown, { text: '▁' }], rules })
  const normal = (text: string): string => pieces(text).join('')
  expect(normal('Ａﬁ e\u0301')).toBe('▁afi▁é')
  expect(normal('e\u0302 x')).toBe('▁e\u0302▁x')
  expect(normal('\u00A0 a\u00A0\n b\u200B c \n')).toBe('▁a▁b▁c')
  expect(normal('x㌀')).toBe('▁xab▁cd')
  expect([normal(''), normal(' \u00A0')]).toEqual(['', ''])
  const kept = open({ pieces: [unknown, { text: '▁' }], rules, fewerBlanks: false, blankInFront: false })
  expect(kept.pieces(' a  Ａ ').join('')).toBe('▁a▁▁a▁')
  expect(kept.text(['▁', 'a'])).toBe(' a')
})

it('refuses fields that it would have to ignore', () => {
  const pieces = [...controls, ...scored(words)]
  const message = (model: Omit<ModelFixture, 'pieces'> & { pieces?: readonly PieceFixture[] }): string =>
    refusal(() => parsePieceModel(modelBytes({ pieces, ...model }), 'a.model')).message
  expect(message({ kind: 3 })).toBe('a.model cuts texts by word, expected unigram or bpe')
  expect(message({ more: [intField(9, 1)] })).toBe('a.model has field 9, which is not known here')
  expect(message({ moreOfTrainer: [intField(24, 1)] })).toContain('treat_whitespace_as_suffix')
  expect(message({ moreOfTrainer: [intField(200, 1)] })).toBe(
    'a.model has field 200, which is not known here (in its trainer_spec)',
  )
  expect(message({ moreOfNormaliser: [intField(5, 0)] })).toContain('escape_whitespaces')
  expect(message({ more: [bytesField(5, bytesField(2, 'rules'))] })).toContain('denormalizer_spec')
  expect(message({ moreOfNormaliser: [bytesField(2, 'abc')] })).toContain('precompiled_charsmap')
  expect(message({ pieces: [...pieces, { text: 'a' }] })).toBe('a.model has a piece twice')
  expect(message({ pieces: scored(words) })).toContain('has 0 unknown pieces')
  expect(message({ pieces: [...pieces, { text: 'x', type: 7 }] })).toBe(
    'a.model has type 7, expected one from 1 to 6 (in piece 15)',
  )
  const whole = modelBytes({ pieces })
  expect(refusal(() => parsePieceModel(whole.subarray(0, whole.length - 3), 'a.model')).message).toContain('ends inside of')
  expect(refusal(() => parsePieceModel(Buffer.from('aGVsbG8= 0\n'), 'a.model')).message).toContain('a.model')
  // Known fields without an effect on segmentation pass, and so do absent ones.
  expect(
    open({ pieces, moreOfTrainer: [bytesField(1, 'corpus.txt'), intField(49, 1)], more: [bytesField(4, 'x')] }).pieces('a'),
  ).toEqual(['▁a'])
})
