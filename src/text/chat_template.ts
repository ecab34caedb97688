/**
 * Renders chat messages by the model's own Jinja template, to the text that the model was trained with. Rendering follows Hugging Face: blocks are
 * trimmed, special tokens are variables, dates are English.
 */
import { Environment } from '@huggingface/jinja'
import { HeddleError, usageError } from '../errors.js'
import { parseTemplate, renderTemplate } from './jinja.js'
import { withinTime } from './time_limit.js'

export interface TextPart {
  readonly type: 'text'
  readonly text: string
}

/** One message. Other fields (`tool_calls`, `name`, `reasoning_content`) are passed to the template. */
export interface ChatMessage {
  readonly role: string
  /** A text, or its parts, which are joined; null or omitted if there are `tool_calls`. */
  readonly content?: string | readonly TextPart[] | null | undefined
  readonly [field: string]: unknown
}

export interface RenderOptions {
  /**
   * True if the text ends where the model's answer begins; false if it ends after the last message; `continue` if it ends inside the last message,
   * after its content, so that the model continues it. `continue` by default for a last message of the assistant, else true.
   */
  readonly answer?: boolean | 'continue'
  /** Further variables of the template, such as `enable_thinking` or `tools`. */
  readonly variables?: Readonly<Record<string, unknown>>
  /** Time for `strftime_now`; now by default. */
  readonly now?: Date
}

export interface ChatTemplate {
  /**
   * Text of a conversation.
   * @throws usage `chat.message` for an invalid message, `chat.refused` if the template refuses the conversation, `chat.template` if it fails
   */
  render(messages: readonly ChatMessage[], options?: RenderOptions): string
}

/** Time limit of a template in milliseconds. */
const allowedMs = 3000
/** Maximum length of a `range`: a larger array would fill the memory. */
const mostRange = 1_000_000

/**
 * Parses a template.
 * @param source the Jinja source
 * @param name of the file, used in messages
 * @param tokens variables such as `bos_token`
 * @throws usage `chat.template` for an invalid template
 */
export function chatTemplate(source: string, name: string, tokens: Readonly<Record<string, string>>): ChatTemplate {
  const failed = (what: string, cause: unknown) =>
    usageError('chat.template', `${name} ${what}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  const inTime = <T>(what: string, work: () => T): T => {
    const done = withinTime(allowedMs, () => {
      try {
        return work()
      } catch (cause) {
        throw cause instanceof HeddleError ? cause : failed(`cannot ${what}`, cause)
      }
    })
    if (done !== undefined) return done.value
    throw usageError('chat.template', `${name} does not ${what} within ${allowedMs / 1000} s`, {
      hint: 'give the prompt as a text or as token ids',
    })
  }
  const program = inTime('be read', () => parseTemplate(source))
  return {
    render(messages, { answer: given, variables = {}, now = new Date() } = {}) {
      const whole = wholeMessages(messages)
      const last = lastText(whole)
      const answer = given ?? (last?.role === 'assistant' ? 'continue' : true)
      const rendered = inTime('render the conversation', () => {
        const environment = new Environment()
        const values = {
          ...tokens,
          tools: null,
          documents: null,
          ...variables,
          ...globals(name, now),
          messages: whole,
          add_generation_prompt: answer === true,
        }
        for (const [variable, value] of Object.entries(values)) environment.set(variable, value)
        return renderTemplate(program, environment)
      })
      return answer === 'continue' ? untilEndOf(last?.content, rendered, name) : rendered
    },
  }
}

/** Role and text of the last message; undefined if it has none. */
function lastText(messages: readonly Readonly<Record<string, unknown>>[]) {
  const { role, content } = messages.at(-1) ?? {}
  return typeof content === 'string' && content.trim() !== '' ? { role, content } : undefined
}

/**
 * A rendered conversation up to the end of its last message's content. A template may trim the content: then it ends without its trailing space.
 * @throws usage `chat.continue` for a message without text, or one that the template does not write as it is
 */
function untilEndOf(content: string | undefined, rendered: string, name: string): string {
  const at = content === undefined ? -1 : rendered.lastIndexOf(content.trim())
  if (content === undefined || at < 0) {
    const what = content === undefined ? 'has no text' : `is not written by ${name} as it is`
    throw usageError('chat.continue', `the last message ${what}, so that it cannot be continued`, {
      hint: 'pass answer: true for a new answer',
    })
  }
  const whole = content.trimStart()
  return rendered.slice(0, at + (rendered.startsWith(whole, at) ? whole : content.trim()).length)
}

/** Globals of every template. */
const globals = (name: string, now: Date): Readonly<Record<string, unknown>> => ({
  ...{ true: true, false: false, none: null, True: true, False: false, None: null },
  raise_exception: (message: unknown) => {
    throw usageError('chat.refused', `${name} refuses the conversation: ${String(message)}`)
  },
  range: (start: number, stop?: number, step = 1): number[] =>
    numbers(stop === undefined ? [0, start, step] : [start, stop, step]),
  strftime_now: (format: string): string => formatDate(now, format),
})

function numbers([start, stop, step]: readonly [number, number, number]): number[] {
  const count = Math.max(0, Math.ceil((stop - start) / step))
  if (![start, stop, step].every(Number.isSafeInteger) || step === 0)
    throw new Error('range takes integers, and a step that is not 0')
  if (count > mostRange) throw new Error(`range gives ${count} numbers, at most ${mostRange} are allowed`)
  return Array.from({ length: count }, (_, i) => start + i * step)
}

const months = 'January February March April May June July August September October November December'.split(' ')
const days = 'Sunday Monday Tuesday Wednesday Thursday Friday Saturday'.split(' ')

/** Python's `strftime` in its default locale, limited to directives that templates use. @throws an error for another directive */
function formatDate(date: Date, format: string): string {
  const two = (value: number): string => String(value).padStart(2, '0')
  const [month = '', day = ''] = [months[date.getMonth()], days[date.getDay()]]
  const parts: Readonly<Record<string, string>> = {
    ...{ Y: String(date.getFullYear()), y: two(date.getFullYear() % 100), m: two(date.getMonth() + 1), d: two(date.getDate()) },
    ...{ B: month, b: month.slice(0, 3), A: day, a: day.slice(0, 3) },
    ...{ H: two(date.getHours()), I: two(date.getHours() % 12 || 12), M: two(date.getMinutes()), S: two(date.getSeconds()) },
    ...{ p: date.getHours() < 12 ? 'AM' : 'PM', '%': '%' },
  }
  return format.replace(/%(.?)/gs, (directive, letter: string) => {
    const part = parts[letter]
    if (part === undefined) throw new Error(`strftime_now does not know ${directive}`)
    return part
  })
}

/** Messages whose content is one string each. @throws usage `chat.message` */
function wholeMessages(messages: readonly ChatMessage[]): Readonly<Record<string, unknown>>[] {
  if (!Array.isArray(messages) || messages.length === 0) {
    throw usageError('chat.message', 'there are no messages, expected at least one', {
      hint: 'for example [{"role": "user", "content": "..."}]',
    })
  }
  return messages.map((message, i) => {
    const { role, content, tool_calls: calls } = typeof message === 'object' && message !== null ? message : {}
    if (typeof role !== 'string' || role === '') {
      throw usageError(
        'chat.message',
        `message ${i} has no role, expected user, assistant, system or another role of the template`,
      )
    }
    if (typeof content === 'string' || (content == null && calls != null)) return message
    if (Array.isArray(content))
      return { ...message, content: content.map((part: unknown, at) => textOfPart(part, i, at)).join('') }
    throw usageError(
      'chat.message',
      `message ${i} has content of type ${content === null ? 'null' : typeof content}, expected a text`,
      { hint: textsAlone },
    )
  })
}

const textsAlone = 'models here read text: a string, or parts such as {"type": "text", "text": "..."}'

/** Text of a part. @throws usage `chat.message` with the part and its type */
function textOfPart(part: unknown, message: number, at: number): string {
  const { type, text }: { type?: unknown; text?: unknown } = typeof part === 'object' && part !== null ? part : {}
  if (type === 'text' && typeof text === 'string') return text
  const found = type === 'text' ? `text of type ${typeof text}` : `type ${JSON.stringify(type) ?? 'undefined'}`
  throw usageError('chat.message', `message ${message}: part ${at} has ${found}, expected a text`, { hint: textsAlone })
}
