import { readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type ChatMessage, chatTemplate, type RenderOptions } from '../../src/text/chat_template.js'
import { loadChatTemplate } from '../../src/text/load_template.js'
import { type PromptReader, promptIds } from '../../src/text/prompts.js'
import { loadTokenizer } from '../../src/text/tokenizer.js'
import { kjvGqa } from '../models/text_fixtures.js'
import { refusal } from '../refusal.js'

const golden: { chat: { messages: ChatMessage[]; text: string; ids: number[] } } = JSON.parse(
  readFileSync(join(kjvGqa, 'text_golden.json'), 'utf8'),
)

const hello: readonly ChatMessage[] = [{ role: 'user', content: 'Hello' }]
const render = (source: string, messages = hello, options?: RenderOptions): string =>
  chatTemplate(source, 'chat_template.jinja', { bos_token: '<s>', eos_token: '</s>' }).render(messages, options)

async function inFolder<T>(files: Readonly<Record<string, string>>, work: (dir: string) => Promise<T>): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), 'heddle-chat-'))
  try {
    await mkdir(join(dir, 'additional_chat_templates'))
    for (const [name, text] of Object.entries(files)) await writeFile(join(dir, name), text)
    return await work(dir)
  } finally {
    await rm(dir, { recursive: true })
  }
}

const reader = async (): Promise<PromptReader> => ({
  tokenizer: await loadTokenizer(kjvGqa),
  template: await loadChatTemplate(kjvGqa),
  ...{ bos: 1, vocab: 2048 },
})

describe('chat templates', () => {
  it('render as HF renders them, with one first token', async () => {
    const { chat } = golden
    const read = await reader()
    expect(read.template?.render(chat.messages)).toBe(chat.text)
    expect(promptIds({ messages: chat.messages }, read)).toEqual(chat.ids)
  })

  it('have the tokens, the generation prompt, and given variables', () => {
    expect(render('{{ bos_token }}{{ messages[0]["content"] }}{{ eos_token }}{{ pad_token }}')).toBe('<s>Hello</s>')
    const answers = '{% if add_generation_prompt %}answer{% endif %}'
    expect([render(answers), render(answers, hello, { answer: false })]).toEqual(['answer', ''])
    const thinks = '{% if enable_thinking is defined and enable_thinking is false %}no thoughts{% endif %}{{ tools is none }}'
    expect(render(thinks, hello, { variables: { enable_thinking: false, tools: [] } })).toBe('no thoughtsFalse')
    expect(render(thinks)).toBe('True')
    const trimmed =
      '{% for m in messages %}\n  {%- if m.role == "user" %}\n    {% set c = m.content %}\n{{ c }}\n  {% endif %}\n{% endfor %}\n'
    expect(render(trimmed)).toBe('Hello\n')
  })

  it('continue a last message of the assistant, as HF does', () => {
    const turns =
      '{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}'
    const sure = [...hello, { role: 'assistant', content: 'Sure, Hello ' }]
    expect(render(turns, sure)).toBe('<user>Hello<end><assistant>Sure, Hello ')
    expect(render(turns.replace('m.content', 'm.content | trim'), sure)).toBe('<user>Hello<end><assistant>Sure, Hello')
    expect(render(turns, sure, { answer: true })).toBe('<user>Hello<end><assistant>Sure, Hello <end><assistant>')
    expect(render(turns, sure, { answer: false })).toBe('<user>Hello<end><assistant>Sure, Hello <end>')
    expect(render(turns, hello, { answer: 'continue' })).toBe('<user>Hello')
    const changed = turns.replace('m.content', 'm.content | upper')
    expect(refusal(() => render(changed, sure))).toMatchObject({
      code: 'chat.continue',
      message: 'the last message is not written by chat_template.jinja as it is, so that it cannot be continued',
    })
    const calls = [...hello, { role: 'assistant', content: '', tool_calls: [] }]
    expect(refusal(() => render(turns, calls, { answer: 'continue' })).message).toContain('has no text')
    expect(render(turns, calls)).toContain('<end><assistant>')
  })

  it('tell dates in English, whatever the machine speaks', () => {
    const now = new Date(2026, 6, 4, 15, 5, 9)
    const date = (format: string) => render(`{{ strftime_now('${format}') }}`, hello, { now })
    expect(date('%d %b %Y')).toBe('04 Jul 2026')
    expect(date('%A, %B %d, %I:%M:%S %p, 100%%')).toBe('Saturday, July 04, 03:05:09 PM, 100%')
    expect(refusal(() => date('%q')).message).toContain('does not know %q')
  })

  it('may refuse a conversation, with the reason', () => {
    const strict = '{% if messages[0].role != "user" %}{{ raise_exception("Roles must alternate") }}{% endif %}ok'
    expect(render(strict)).toBe('ok')
    const { code, message } = refusal(() => render(strict, [{ role: 'system', content: '' }]))
    expect([code, message]).toEqual(['chat.refused', 'chat_template.jinja refuses the conversation: Roles must alternate'])
  })

  it('that fail are named', () => {
    for (const [source, text] of [
      ['{% if %}', 'cannot be read'],
      ['{{ messages | no_such_filter }}', 'no_such_filter'],
      ['{{ messages[0].content + none + 1 }}', 'cannot render'],
      ['{{ range(10**9) | length }}', 'at most 1000000'],
      ['{{ range(0, 10, 0) }}', 'step that is not 0'],
    ] as const) {
      const { code, message } = refusal(() => render(source))
      expect([code, message]).toEqual(['chat.template', expect.stringContaining(text)])
    }
    expect(render('{{ range(3) | join(",") }} {{ range(1, 7, 2) | join(",") }} {{ range(3, 0, -1) | join(",") }}')).toBe(
      '0,1,2 1,3,5 3,2,1',
    )
  })

  it('that never end are ended', () => {
    const loops = `${'{% for a in range(1000) %}'.repeat(4)}${'{% endfor %}'.repeat(4)}`
    expect(refusal(() => render(loops)).message).toContain('does not render the conversation within 3 s')
  })

  it('join the parts of a text', () => {
    const parts = [{ role: 'user', name: 'x', content: ['a', ' b'].map((text) => ({ type: 'text' as const, text })) }]
    expect(render('{{ messages[0].name }}: {{ messages[0].content }}', parts)).toBe('x: a b')
  })

  it('accept messages of a role and a text', () => {
    for (const [messages, text] of [
      [[], 'there are no messages'],
      [[{ role: 'user' }], 'message 0 has content of type undefined'],
      [[hello[0], { content: 'a' }], 'message 1 has no role'],
      [[{ role: 'user', content: 3 }], 'message 0 has content of type number'],
      [[{ role: 'user', content: [{ type: 'text', text: 'a' }, { type: 'image' }] }], 'message 0: part 1 has type "image"'],
      [[{ role: 'user', content: [{ type: 'text' }] }], 'message 0: part 0 has text of type undefined'],
      [[{ role: 'user', content: ['a'] }], 'message 0: part 0 has type undefined'],
      [[null], 'message 0 has no role'],
    ] as const) {
      const { code, message } = refusal(() => render('x', messages as unknown as ChatMessage[]))
      expect([code, message]).toEqual(['chat.message', expect.stringContaining(text)])
    }
  })

  it('are found in either file, by name if there are several', async () => {
    const config = (chat_template: unknown) => JSON.stringify({ chat_template, bos_token: { content: '[B]' }, eos_token: null })
    const text = async (dir: string, name?: string) => (await loadChatTemplate(dir, name))?.render(hello)
    await inFolder({ 'tokenizer_config.json': config('old {{ bos_token }}') }, async (dir) => {
      expect(await text(dir)).toBe('old [B]')
      await writeFile(join(dir, 'chat_template.jinja'), 'new {{ bos_token }}')
      expect(await text(dir)).toBe('new [B]')
      await writeFile(join(dir, 'additional_chat_templates', 'tool_use.jinja'), 'tools')
      expect(await text(dir, 'tool_use')).toBe('tools')
      await expect(text(dir, '../chat_template')).rejects.toMatchObject({ code: 'chat.template' })
    })
    const several = [
      { name: 'default', template: 'one' },
      { name: 'tool_use', template: 'two' },
    ]
    await inFolder({ 'tokenizer_config.json': config(several) }, async (dir) => {
      expect([await text(dir), await text(dir, 'tool_use')]).toEqual(['one', 'two'])
      await expect(text(dir, 'rag')).rejects.toMatchObject({ code: 'chat.template', hint: 'it has default, tool_use' })
    })
    await inFolder({ 'tokenizer_config.json': '{}' }, async (dir) => expect(await loadChatTemplate(dir)).toBeUndefined())
    await inFolder({}, async (dir) => expect(await loadChatTemplate(dir)).toBeUndefined())
    await inFolder({ 'tokenizer_config.json': config(3) }, async (dir) => {
      await expect(loadChatTemplate(dir)).rejects.toMatchObject({ code: 'config.field' })
    })
  })
})

describe('prompts', () => {
  it('are ids, texts or messages', async () => {
    const read = await reader()
    expect(promptIds({ ids: [5, 6] }, read)).toEqual([5, 6])
    expect(promptIds({ text: 'In the beginning' }, read)).toEqual([1, 1146, 262, 1799, 1242])
    // The first token is not doubled.
    expect(promptIds({ text: '<s>In the beginning' }, read)).toEqual([1, 1146, 262, 1799, 1242])
    expect(promptIds({ messages: hello, answer: false }, read).slice(0, 2)).toEqual([1, 3])
  })

  it('are refused if they are invalid', async () => {
    const read = await reader()
    for (const [prompt, changes, code] of [
      [{ ids: [] }, {}, 'prompt.empty'],
      [{ ids: [1, 2048] }, {}, 'prompt.token'],
      [{ ids: [-1] }, {}, 'prompt.token'],
      [{ ids: [1.5] }, {}, 'prompt.token'],
      [{ text: 'a' }, { tokenizer: undefined }, 'prompt.tokenizer'],
      [{ text: 'a' }, { vocab: 10 }, 'prompt.token'],
      [{ messages: hello }, { template: undefined }, 'prompt.template'],
    ] as const) {
      expect(refusal(() => promptIds(prompt, { ...read, ...changes })).code).toBe(code)
    }
  })
})
