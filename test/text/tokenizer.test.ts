import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadTokenizer } from '../../src/text/tokenizer.js'
import { exampleModel } from '../models/fixtures.js'
import { numberWords } from '../models/seq2seq_fixtures.js'
import { kjvGqa } from '../models/text_fixtures.js'

describe('the tokenizer', () => {
  it('encodes as the test set was encoded', async () => {
    const tokenizer = await loadTokenizer(exampleModel)
    const set: unknown = JSON.parse(await readFile(join(exampleModel, 'test-set.json'), 'utf8'))
    const { items } = set as { items: { input_ids: number[] }[] }
    for (const { input_ids: ids } of items) {
      // Decoding joins an apostrophe to its word, which encoding splits again.
      expect(tokenizer.encode(tokenizer.decode(ids)).ids).toEqual(ids)
    }
  })

  it('knows the word of every token', async () => {
    const tokenizer = await loadTokenizer(exampleModel)
    const { ids, tokens, words } = tokenizer.encodeWords(["God's", 'pillar', 'stone'])
    expect(tokens).toEqual(['[CLS]', 'god', "'", 's', 'pill', '##ar', 'stone', '[SEP]'])
    expect(words).toEqual([-1, 0, 0, 0, 1, 1, 2, -1])
    expect(ids).toEqual(tokenizer.encode("God's pillar stone").ids)
    expect(tokenizer.encodeWords([]).tokens).toEqual(['[CLS]', '[SEP]'])
    expect(tokenizer.idOf('[SEP]')).toBe(3)
  })

  it('decodes words joined by blanks, without start and end', async () => {
    const tokenizer = await loadTokenizer(numberWords)
    const golden: unknown = JSON.parse(await readFile(join(numberWords, 'golden.json'), 'utf8'))
    const { cases } = golden as { cases: { number: number; input_ids: number[]; greedy: number[]; greedy_text: string }[] }
    for (const { number, input_ids: ids, greedy, greedy_text: text } of cases) {
      expect(tokenizer.encode(String(number)).ids).toEqual(ids)
      expect(tokenizer.decode([0, ...greedy, 1])).toBe(text)
    }
    expect(tokenizer.decode([23, 1], { special: true })).toBe('ten </s>')
    expect([tokenizer.decode([]), tokenizer.decode([1])]).toEqual(['', ''])
  })

  it('shows nothing of ids that pad a vocabulary', async () => {
    for (const folder of [kjvGqa, numberWords]) {
      const tokenizer = await loadTokenizer(folder)
      expect(tokenizer.decode([5, 99_999, 6])).toBe(tokenizer.decode([5, 6]))
    }
  })

  it('explains how to write tokenizer.json if there is another tokenizer', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'heddle-tokenizer-'))
    const hint = (...texts: string[]) =>
      Promise.all(
        texts.map((text) =>
          expect(loadTokenizer(dir)).rejects.toMatchObject({ code: 'tokenizer.read', hint: expect.stringContaining(text) }),
        ),
      )
    try {
      await expect(loadTokenizer(dir)).rejects.toMatchObject({ hint: 'without a tokenizer, give token ids instead of text' })
      await writeFile(join(dir, 'vocab.txt'), '')
      await hint('vocab.txt is not read: AutoTokenizer.from_pretrained(FOLDER)', 'give token ids')
      await writeFile(join(dir, 'source.spm'), '')
      await hint('source.spm is not read: state "tokenizer_class": "MarianTokenizer"')
    } finally {
      await rm(dir, { recursive: true })
    }
  })

  it('refuses folders without a tokenizer, and invalid files', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'heddle-tokenizer-'))
    try {
      await expect(loadTokenizer(dir)).rejects.toMatchObject({ code: 'tokenizer.read' })
      for (const text of ['{', '3', '{}', '{"model":{"type":"Psychic"}}']) {
        await writeFile(join(dir, 'tokenizer.json'), text)
        await expect(loadTokenizer(dir), text).rejects.toMatchObject({ code: 'tokenizer.invalid' })
      }
    } finally {
      await rm(dir, { recursive: true })
    }
  })
})
