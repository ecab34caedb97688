/** Tokenizers of folders that have SentencePiece models alone: Marian's, Pegasus' and LLaMA's, with the ids of Hugging Face. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { byteText } from '../../../src/text/sentencepiece/model.js'
import { loadTokenizer, type Tokenizer } from '../../../src/text/tokenizer.js'
import { modelBytes, type PieceFixture } from './files.js'

type Files = Readonly<Record<string, Buffer | object>>

/** Runs `work` with a folder of files, of which objects are JSON. */
async function inFolder<T>(files: Files, work: (dir: string) => Promise<T>): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), 'heddle-pieces-'))
  try {
    for (const [name, content] of Object.entries(files)) {
      await mkdir(dirname(join(dir, name)), { recursive: true })
      await writeFile(join(dir, name), Buffer.isBuffer(content) ? content : JSON.stringify(content))
    }
    return await work(dir)
  } finally {
    await rm(dir, { recursive: true })
  }
}

const open = (files: Files, work: (tokenizer: Tokenizer) => void): Promise<void> =>
  inFolder(files, async (dir) => work(await loadTokenizer(dir)))
const scored = (...texts: readonly string[]): PieceFixture[] => texts.map((text, i) => ({ text, score: -1 - i / 8 }))
const controls: readonly PieceFixture[] = [
  { text: '<unk>', type: 2 },
  { text: '<s>', type: 3 },
  { text: '</s>', type: 3 },
]

describe('of Marian', () => {
  const vocab = {
    '</s>': 0,
    '<unk>': 1,
    '▁the': 2,
    '▁cat': 3,
    s: 4,
    '▁die': 5,
    '▁Katze': 6,
    '.': 7,
    '>>de<<': 8,
    ü: 9,
    '▁': 10,
    '<pad>': 11,
  }
  const files: Files = {
    'config.json': { model_type: 'marian' },
    'source.spm': modelBytes({ pieces: [...controls, ...scored('▁the', '▁cat', 's', '.', '▁', '>')], rules: { '\u00A0': ' ' } }),
    'target.spm': modelBytes({ pieces: [...controls, ...scored('▁die', '▁Katze', '.', '▁')] }),
    'vocab.json': vocab,
    'tokenizer_config.json': { source_lang: 'en', target_lang: 'de', model_max_length: 512 },
  }

  it('has the ids of vocab.json, and ends with the end', () =>
    open(files, (tokenizer) => {
      expect(tokenizer.encode('the\u00A0cats.')).toMatchObject({
        ids: [2, 3, 4, 7, 0],
        tokens: ['▁the', '▁cat', 's', '.', '</s>'],
      })
      expect(tokenizer.encode('the cat', { special: false }).ids).toEqual([2, 3])
      expect(tokenizer.encode('the', { pair: 'cat' }).ids).toEqual([2, 3, 0])
      expect(tokenizer.decode([11, 5, 6, 7, 0])).toBe('die Katze.')
      expect(tokenizer.decode([5, 6, 0], { special: true })).toBe('die Katze</s>')
      // Pieces of sources alone are written too, and ids without a piece are unknown.
      expect([tokenizer.decode([3, 4]), tokenizer.decode([5, 99])]).toEqual(['cats', 'die'])
      expect([tokenizer.idOf('<pad>'), tokenizer.idOf('▁die'), tokenizer.idOf('nothing')]).toEqual([11, 5, undefined])
    }))

  it('reads a language before a source as one token', () =>
    open(files, (tokenizer) => {
      expect(tokenizer.encode('>>de<< the cat').ids).toEqual([8, 2, 3, 0])
      expect(tokenizer.encode('>>xx<< the').ids).toEqual([1, 2, 0])
      // Elsewhere it is text.
      expect(tokenizer.encode('the >>de<<').ids).toEqual([2, 10, 1, 1, 1, 0])
    }))

  it('knows pieces that are unknown to the source and in vocab.json', () =>
    open(files, (tokenizer) => {
      expect(tokenizer.encode('the ü').ids).toEqual([2, 10, 9, 0])
      expect(tokenizer.encode('the ö').ids).toEqual([2, 10, 1, 0])
      expect(tokenizer.encode('the</s>cat').ids).toEqual([2, 0, 3, 0])
    }))

  it('writes with the vocabulary of the target if there are two', () =>
    open(
      {
        ...files,
        'target_vocab.json': { '</s>': 0, '<unk>': 1, '▁Katze': 2 },
        'tokenizer_config.json': { separate_vocabs: true },
      },
      (tokenizer) => {
        expect(tokenizer.encode('the').ids).toEqual([2, 0])
        expect(tokenizer.decode([2, 0])).toBe('Katze')
      },
    ))

  it('names the file that is missing or wrong', async () => {
    const { 'vocab.json': _, ...without } = files
    const rejected = (some: Files, error: object): Promise<void> =>
      inFolder(some, (dir) => expect(loadTokenizer(dir)).rejects.toMatchObject(error))
    await rejected(without, { code: 'tokenizer.read', message: expect.stringContaining('vocab.json') })
    await rejected(
      { ...files, 'vocab.json': { '</s>': 0, '<pad>': 1 } },
      { code: 'tokenizer.invalid', message: expect.stringContaining('"<unk>" has no id') },
    )
    await rejected(
      { ...files, 'target.spm': Buffer.from('x') },
      { code: 'tokenizer.invalid', message: expect.stringContaining('target.spm') },
    )
    const config = { sp_model_kwargs: { enable_sampling: true } }
    await rejected(
      { ...files, 'tokenizer_config.json': config },
      { code: 'config.field', message: expect.stringContaining('sp_model_kwargs') },
    )
    // A class that is not known has its hint.
    await rejected(
      { ...files, 'tokenizer_config.json': { tokenizer_class: 'XTokenizer' } },
      { code: 'tokenizer.read', hint: expect.stringContaining('source.spm') },
    )
  })
})

describe('of Pegasus', () => {
  const pieces: readonly PieceFixture[] = [
    { text: '<pad>', type: 3 },
    { text: '</s>', type: 3 },
    { text: '<unk>', type: 2 },
    ...scored('▁a', '▁cat', 's', '▁'),
  ]
  const files = (config: object = {}): Files => ({
    'config.json': { model_type: 'pegasus' },
    'spiece.model': modelBytes({ pieces }),
    'tokenizer_config.json': config,
  })

  it('puts pieces after the tokens of training', () =>
    open(files(), (tokenizer) => {
      expect(tokenizer.encode('a cats').ids).toEqual([106, 107, 108, 1])
      expect(tokenizer.encode('a zz').ids).toEqual([106, 109, 105, 1])
      expect(
        ['<pad>', '</s>', '<mask_1>', '<mask_2>', '<unk_2>', '<unk_102>', '<unk>'].map((token) => tokenizer.idOf(token)),
      ).toEqual([0, 1, 2, 3, 4, 104, 105])
      expect(tokenizer.encode('a <mask_1> cat').ids).toEqual([106, 2, 107, 1])
      expect(tokenizer.decode([0, 106, 107, 108, 1])).toBe('a cats')
      expect(tokenizer.decode([106, 2, 1], { special: true })).toBe('a<mask_1></s>')
    }))

  it('follows its configuration', async () => {
    const bare = { offset: 0, mask_token_sent: null, mask_token: '<s>', tokenizer_class: 'PegasusTokenizer' }
    const more = { 7: { content: '<s>', special: true, lstrip: true }, 8: { content: '[x-y]/(z)', rstrip: true } }
    const added = { added_tokens_decoder: more }
    await open(files({ ...bare, ...added }), (tokenizer) => {
      expect(tokenizer.encode('a cats').ids).toEqual([3, 4, 5, 1])
      expect(tokenizer.encode('a <s>').ids).toEqual([3, 7, 1])
      expect(tokenizer.encode('a[x-y]/(z) s').ids).toEqual([3, 8, 6, 5, 1])
      expect(tokenizer.decode([3, 8, 7, 1])).toBe('a[x-y]/(z)')
    })
    const names = ['<mask_1>', ...Array.from({ length: 101 }, (_, i) => `<unk_${i + 2}>`)]
    await open(files({ additional_special_tokens: names, eos_token: { content: '</s>' } }), (tokenizer) => {
      expect([tokenizer.idOf('<unk_102>'), tokenizer.encode('a').ids]).toEqual([104, [106, 1]])
    })
    await inFolder(files({ mask_token_sent: null }), (dir) =>
      expect(loadTokenizer(dir)).rejects.toMatchObject({
        code: 'tokenizer.invalid',
        hint: expect.stringContaining('"offset": 0'),
      }),
    )
  })
})

describe('of LLaMA', () => {
  const bytes = Array.from({ length: 256 }, (_, byte) => ({ text: byteText(byte), type: 6 }))
  const pieces = [...controls, ...bytes, ...scored('ca', 'cat', '▁cat', '▁', 'c', 'a', 't', 's')]
  const id = (text: string): number => pieces.findIndex((piece) => piece.text === text)
  const files = (config: object = {}): Files => ({
    'config.json': { model_type: 'llama' },
    'tokenizer.model': modelBytes({ kind: 2, byteFallback: true, fewerBlanks: false, pieces }),
    'tokenizer_config.json': config,
  })
  const ids = (...texts: readonly string[]): number[] => texts.map(id)

  it('begins with the start token, and has bytes for unknown characters', () =>
    open(files(), (tokenizer) => {
      expect(tokenizer.encode('cats').ids).toEqual(ids('<s>', '▁cat', 's'))
      expect(tokenizer.encode(' cat  é').ids).toEqual(ids('<s>', '▁', '▁cat', '▁', '▁', '<0xC3>', '<0xA9>'))
      expect(tokenizer.decode(ids('<s>', '▁', '▁cat', '<0xC3>', '<0xA9>', '</s>'))).toBe(' caté')
      expect(tokenizer.encode('cat', { pair: 'cat' })).toMatchObject({
        ids: ids('<s>', '▁cat', '<s>', '▁cat'),
        types: [0, 0, 1, 1],
      })
      expect(tokenizer.encodeWords(['cat', 'cats']).words).toEqual([-1, 0, 1, 1])
      expect(tokenizer.encode('cats cats', { truncate: { how: 'longest_first', most: 3 } }).ids).toEqual(ids('<s>', '▁cat', 's'))
    }))

  it('puts a blank before every section, or only before the text', async () => {
    await open(files(), ({ encode }) => expect(encode('cat</s>cat').ids).toEqual(ids('<s>', '▁cat', '</s>', '▁cat')))
    await open(files({ legacy: false }), ({ encode }) =>
      expect(encode('cat</s>cat').ids).toEqual(ids('<s>', '▁cat', '</s>', 'cat')),
    )
    const bare = { legacy: false, add_prefix_space: false, add_bos_token: false, add_eos_token: true }
    await open(files(bare), ({ encode }) => expect(encode('cat').ids).toEqual(ids('cat', '</s>')))
  })

  it('is not read if there is a tokenizer.json', () =>
    inFolder({ ...files(), 'tokenizer.json': {} }, (dir) =>
      expect(loadTokenizer(dir)).rejects.toMatchObject({ message: expect.stringContaining('tokenizer.json') }),
    ))
})
