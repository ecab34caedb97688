/**
 * Errors that sources throw, with their messages: input of the page of codes. A helper such as `refuse('topP', value, allowed)` counts at each of its
 * calls, with the arguments of the call in its code and message.
 */
import { type Call, fieldOf, hole, type Parameter, Sources, type Text } from './symbolic.js'

export interface Thrown {
  readonly kind: string
  /** `….shape` if the area is known only at run time. */
  readonly code: string
  readonly message: string
  readonly hint: string
}

interface Open extends Readonly<Record<'code' | 'message' | 'hint', Text>> {
  readonly kind: string
}

/** Constructors of errors: class and position of the message. Details, or the hint of the front end's refusals, follow the message. */
const constructors: Readonly<Record<string, readonly [kind: string, message: number]>> = {
  usageError: ['usage', 1],
  findingError: ['finding', 1],
  environmentError: ['environment', 1],
  reject: ['usage', 2],
  Rejection: ['usage', 2],
}

/** Most helpers between the constructor of an error and the statement that names its code. */
const deepest = 4

const isOpen = (part: string | Parameter): part is Parameter => typeof part !== 'string'
/** A text with holes for parameters. An alternative that begins with nothing begins with a hole. */
const closed = (text: Text): string =>
  text
    .map((part) => (isOpen(part) ? hole : part))
    .join('')
    .replace(/^ /, `${hole} `)
    .replace(/…+/g, hole)

/** The alternative with the longest literals. */
const plainest = (texts: readonly Text[]): Text =>
  texts.reduce<Text>((best, text) => (closed(text).length > closed(best).length ? text : best), [])

/** True if hardly a word of a message is known before it is thrown. */
export const isVague = (message: string): boolean => (message.match(/[A-Za-z]{2,}/g) ?? []).length < 2

/** @param files names, relative to one folder, each with its source */
export function thrown(files: readonly (readonly [name: string, source: string])[]): readonly Thrown[] {
  const sources = new Sources(files)
  return Object.entries(constructors).flatMap(([name, [kind, at]]) =>
    sources.callsNamed(name).flatMap((call) => {
      const given = call.arguments ?? []
      const hint = plainest(sources.textsOf(at === 1 ? fieldOf(given[2], 'hint') : given[3]))
      return sources
        .textsOf(given[0])
        .flatMap((code) =>
          sources.textsOf(given[at]).flatMap((message) => followed(sources, { kind, code, message, hint }, [call])),
        )
    }),
  )
}

/** An error, or one per call of the helper whose parameter is in its code, or nearly all of its message. */
function followed(sources: Sources, error: Open, path: readonly Call[]): readonly Thrown[] {
  const { kind, code, message, hint } = error
  const open = code.find(isOpen) ?? (isVague(closed(message)) ? message.find(isOpen) : undefined)
  const here = [{ kind, code: closed(code), message: closed(message), hint: closed(hint) }]
  if (open === undefined || path.length > deepest) return here
  const calls = sources.callsOf(open.of).filter((call) => !path.includes(call))
  const found = calls.flatMap((call) =>
    sources.filled(code, call, open.of).flatMap((filledCode) =>
      sources.filled(message, call, open.of).flatMap((filledMessage) => {
        const filledHint = plainest(sources.filled(hint, call, open.of))
        return followed(sources, { kind, code: filledCode, message: filledMessage, hint: filledHint }, [...path, call])
      }),
    ),
  )
  return found.length === 0 ? here : found
}
