import { describe, expect, it } from 'vitest'
import { commonPrefix } from '../../src/models/llama/prefix.js'
import { type ChatOptions, openChat } from '../../src/text/chat_session.js'
import { loadChatTemplate } from '../../src/text/load_template.js'
import type { PromptReader } from '../../src/text/prompts.js'
import { shownText } from '../../src/text/shown_text.js'
import { loadTokenizer } from '../../src/text/tokenizer.js'
import { kjvGqa } from '../models/text_fixtures.js'
import { refusal } from '../refusal.js'

const reader = async (): Promise<PromptReader> => ({
  tokenizer: await loadTokenizer(kjvGqa),
  template: await loadChatTemplate(kjvGqa),
  ...{ bos: 1, vocab: 2048 },
})

/** Answers with given texts, one id at a time, and records its requests. */
async function answering(...answers: readonly string[]) {
  const read = await reader()
  const asked: number[][] = []
  let ended = 0
  const generator = {
    async *generate(ids: readonly number[], signal?: AbortSignal) {
      asked.push([...ids])
      try {
        for (const id of read.tokenizer?.encode(answers[asked.length - 1] ?? '', { special: false }).ids ?? []) {
          signal?.throwIfAborted()
          yield [id]
        }
      } finally {
        ended++
      }
    },
  }
  const chat = (options: Partial<ChatOptions> = {}) => openChat({ reader: read, generator, ...options })
  return { read, asked, chat, ended: () => ended }
}

async function all(pieces: AsyncIterable<string>): Promise<string> {
  let text = ''
  for await (const piece of pieces) text += piece
  return text
}

describe('conversations', () => {
  it('send the whole conversation, which begins like the turn before', async () => {
    const { asked, chat, read } = await answering(' shepherd; 🙂', ' want.')
    const session = chat()
    expect(await all(session.say('The LORD is my'))).toBe(' shepherd; 🙂')
    expect(await all(session.say('I shall not'))).toBe(' want.')
    expect(session.messages.map(({ role, content }) => [role, content])).toEqual([
      ['user', 'The LORD is my'],
      ['assistant', ' shepherd; 🙂'],
      ['user', 'I shall not'],
      ['assistant', ' want.'],
    ])
    const text = '<s><|verse|>The LORD is my shepherd; 🙂</s><|verse|>I shall not'
    expect(asked[1]).toEqual(read.tokenizer?.encode(text, { special: false }).ids)
    const [first = [], second = []] = asked
    expect(commonPrefix(first, second)).toBe(first.length)
    session.reset()
    expect(session.messages).toEqual([])
  })

  it('begin with the system message', async () => {
    const { chat, asked, read } = await answering('a')
    const session = chat({ system: 'Be brief.' })
    await all(session.say('Hi'))
    // This template has no system role, and renders the message as an answer.
    expect(asked[0]).toEqual(read.tokenizer?.encode('<s>Be brief.</s><|verse|>Hi', { special: false }).ids)
    session.reset()
    expect(session.messages).toEqual([{ role: 'system', content: 'Be brief.' }])
  })

  it('end an answer at a stop string, and the work with it', async () => {
    const { chat, ended } = await answering('one two. three four')
    const session = chat({ stop: ['. th', 'four'] })
    expect(await all(session.say('Count'))).toBe('one two')
    expect([session.messages.at(-1)?.content, ended()]).toEqual(['one two', 1])
    expect(refusal(() => chat({ stop: [''] })).code).toBe('generate.stop')
  })

  it('keep the visible part of an answer that is left early, and nothing of a failed turn', async () => {
    const { chat, ended } = await answering('one two three', 'four', 'five')
    const session = chat()
    for await (const piece of session.say('Count')) if (piece.includes('t')) break
    const kept = session.messages.at(-1)?.content ?? ''
    expect('one two three'.startsWith(kept) && kept.includes('t') && kept.length < 13).toBe(true)
    expect(ended()).toBe(1)
    const before = session.messages
    const controller = new AbortController()
    controller.abort(new Error('enough'))
    await expect(all(session.say('More', controller.signal))).rejects.toThrow('enough')
    expect(session.messages).toEqual(before)
    expect(await all(session.say('More'))).toBe('five')
  })

  it('run one turn after the other', async () => {
    const { chat } = await answering('one two')
    const session = chat()
    const turn = session.say('Count')
    await turn.next()
    await expect(session.say('Again').next()).rejects.toMatchObject({ code: 'chat.turn' })
    await turn.return()
    expect(await session.say('Again').next()).toMatchObject({ done: true })
  })

  it('are refused with a model that has no template or no tokenizer', async () => {
    const { chat, read } = await answering()
    for (const [missing, code] of [
      [{ template: undefined }, 'prompt.template'],
      [{ tokenizer: undefined }, 'prompt.tokenizer'],
    ] as const) {
      expect(refusal(() => chat({ reader: { ...read, ...missing } })).code).toBe(code)
    }
  })
})

describe('visible text', () => {
  it('ends with the id that completes a stop string', async () => {
    const tokenizer = await loadTokenizer(kjvGqa)
    const { ids } = tokenizer.encode('In the beginning God created', { special: false })
    const whole = shownText(tokenizer)
    expect(whole.push(ids) + whole.finish()).toBe('In the beginning God created')
    expect([whole.stop, whole.ids]).toEqual([undefined, ids])
    const cut = shownText(tokenizer, ['inning'])
    expect(cut.push(ids) + cut.finish()).toBe('In the beg')
    expect([cut.stop, cut.ids]).toEqual(['inning', ids.slice(0, cut.ids.length)])
    expect(tokenizer.decode(cut.ids)).toBe('In the beginning')
  })
})
