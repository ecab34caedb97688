import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tokenText } from '../../src/text/token_text.js'
import { loadTokenizer, type Tokenizer } from '../../src/text/tokenizer.js'
import { idOf, kjvGqa, sentencePieceVocab, withSentencePiece } from '../models/text_fixtures.js'

const golden: { streams: { text: string; ids: number[]; prefixes: string[] }[] } = JSON.parse(
  readFileSync(join(kjvGqa, 'text_golden.json'), 'utf8'),
)

/** A text without its last character if that may be incomplete. */
const complete = (text: string): string => (text.endsWith('\uFFFD') ? text.slice(0, -1) : text)

/** Compares the output of a stream after every token with decoding all tokens up to it. */
function expectStream(tokenizer: Tokenizer, ids: readonly number[], before: readonly number[] = []): void {
  const decode = (all: readonly number[]): string => tokenizer.decode(all, { cleanUp: false })
  const stream = tokenText(tokenizer, before)
  const start = complete(decode(before)).length
  let text = ''
  for (const [i, id] of ids.entries()) {
    text += stream.push(id)
    expect(text).toBe(complete(decode([...before, ...ids.slice(0, i + 1)])).slice(start))
  }
  text += stream.finish()
  expect(text).toBe(decode([...before, ...ids]).slice(start))
  expect(stream.finish()).toBe('')
}

/** Ids of which many are parts of characters. */
const idLists = (vocab: number, parts: readonly [number, number]) =>
  fc.array(fc.oneof(fc.integer({ min: 0, max: vocab - 1 }), fc.integer({ min: parts[0], max: parts[1] })), { maxLength: 40 })

describe('streams of text', () => {
  it('show the same as HF for every prefix', async () => {
    const tokenizer = await loadTokenizer(kjvGqa)
    for (const { text, ids, prefixes } of golden.streams) {
      expect(tokenizer.encode(text).ids).toEqual(ids)
      expectStream(tokenizer, ids)
      const stream = tokenText(tokenizer)
      let shown = ''
      for (const [i, id] of ids.entries()) {
        shown += stream.push(id)
        expect(shown).toBe(complete(prefixes[i] ?? ''))
      }
      expect(shown).toBe(text)
    }
  })

  it('of any bytes are the text of all ids, without incomplete characters', async () => {
    const tokenizer = await loadTokenizer(kjvGqa)
    // Ids 4 to 259 are the single bytes.
    fc.assert(
      fc.property(idLists(2048, [0, 259]), idLists(2048, [0, 259]), (before, ids) => {
        expectStream(tokenizer, ids)
        expectStream(tokenizer, ids, before)
      }),
      { numRuns: 150 },
    )
  })

  it.each(['Strip', 'Metaspace'] as const)('keep blanks before words, and remove the first: %s', async (decoder) => {
    await withSentencePiece(decoder, async (tokenizer) => {
      const ids = (...tokens: string[]) => tokens.map(idOf)
      for (const list of [
        ids('▁the', '▁a'),
        ids('<s>', '▁the', '</s>', '▁a', 'b'),
        ids('▁', '▁', 'a', '▁▁', 'b'),
        ids('▁▁', '▁the'),
        ids('▁a', '▁,', '.'),
        ids('</s>', '</s>', '▁the', '</s>', '</s>', '▁the'),
        ids('a', '\uFFFD', '\uFFFD', 'b', '\uFFFD'),
      ]) {
        expectStream(tokenizer, list)
        for (let at = 0; at < list.length; at++) expectStream(tokenizer, list.slice(at), list.slice(0, at))
      }
      // A continued text keeps the blank that a separate text would lose.
      expect(tokenText(tokenizer).push(idOf('▁the'))).toBe('the')
      expect(tokenText(tokenizer, ids('▁a')).push(idOf('▁the'))).toBe(' the')
    })
  })

  it('assemble characters from single bytes', async () => {
    await withSentencePiece('Strip', async (tokenizer) => {
      const bytes = [...new TextEncoder().encode('é🙂\uFEFFx')].map((byte) => 3 + byte)
      expectStream(tokenizer, [idOf('▁the'), ...bytes, idOf('▁a')])
      const stream = tokenText(tokenizer)
      expect(bytes.map((id) => stream.push(id))).toEqual(['', 'é', '', '', '', '🙂', '', '', '\uFEFF', 'x'])
      // Invalid bytes are shown as soon as the next one proves it.
      const broken = tokenText(tokenizer)
      expect([0xf0, 0x9f, 0x41, 0xff, 0xff].map((byte) => broken.push(3 + byte))).toEqual(['', '', '\uFFFDA', '', '\uFFFD'])
      expect(broken.finish()).toBe('\uFFFD')
      fc.assert(
        fc.property(idLists(sentencePieceVocab, [3, 258]), idLists(sentencePieceVocab, [3, 258]), (before, ids) => {
          expectStream(tokenizer, ids)
          expectStream(tokenizer, ids, before)
        }),
        { numRuns: 300 },
      )
    })
  })

  it('decode a few ids per token, however long the text is', async () => {
    const tokenizer = await loadTokenizer(kjvGqa)
    const { ids } = tokenizer.encode('In the beginning God created the heaven and the earth. '.repeat(40), { special: false })
    let decoded = 0
    const counting = {
      decode(list: readonly number[], options?: { cleanUp?: boolean }) {
        decoded += list.length
        return tokenizer.decode(list, options)
      },
    }
    const stream = tokenText(counting, ids)
    for (const id of ids) stream.push(id)
    expect(decoded).toBeLessThan(4 * ids.length)
  })
})
