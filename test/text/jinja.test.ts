/** Templates in the manner of ten model families are rendered as Python's Jinja renders them (jinja/goldens.py). */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { type ChatMessage, chatTemplate } from '../../src/text/chat_template.js'
import { refusal } from '../refusal.js'

interface Golden {
  readonly family: string
  readonly template: string
  readonly cases: readonly {
    readonly messages: readonly ChatMessage[]
    readonly variables: Readonly<Record<string, unknown>>
    readonly text?: string
    readonly refused?: string
  }[]
}
const goldens: readonly Golden[] = JSON.parse(readFileSync(new URL('jinja/goldens.json', import.meta.url), 'utf8'))

const hello: readonly ChatMessage[] = [{ role: 'user', content: 'hi' }]
const render = (source: string): string => chatTemplate(source, 'file', {}).render(hello)

describe('a chat template is rendered as by Python, in the manner of', () => {
  it.each(goldens)('$family', ({ template, cases }) => {
    for (const { messages, variables, text, refused } of cases) {
      const { add_generation_prompt: answer = true, ...others } = variables
      const rendered = () =>
        chatTemplate(template, 'file', { bos_token: '<s>', eos_token: '</s>' }).render(messages, {
          answer: answer === true,
          variables: others,
        })
      if (refused === undefined) expect(rendered()).toBe(text)
      else expect(refusal(rendered)).toMatchObject({ code: 'chat.refused', message: expect.stringContaining(refused) })
    }
  })
})

describe('loops', () => {
  it('keep the output of a round before it was left, and leave the innermost loop', () => {
    const inner = '{% for j in [1, 2, 3] %}{{ j }}{% if j == 2 %};{% break %}{% endif %},{% endfor %}'
    expect(render(`{% for i in [1, 2] %}${inner}|{% endfor %}`)).toBe('1,2;|1,2;|')
    expect(render('{% for i in [1, 2, 3] %}{% if i == 2 %}x{% continue %}{% endif %}{{ i }}{% else %}none{% endfor %}')).toBe(
      '1x3',
    )
    expect(render('{% for i in [] %}{{ i }}{% else %}none{% endfor %}')).toBe('none')
    expect(render('{% for i in [1] %}a{% break %}{% else %}none{% endfor %}')).toBe('a')
  })
  it('are the only thing that can be left', () => {
    expect(refusal(() => render('{% break %}')).code).toBe('chat.template')
  })
})
