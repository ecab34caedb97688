/**
 * Texts generated from the token ids of prompts, whole or streamed. Generation ends at a stop string, and neither the stop string nor
 * any text after it is returned.
 */
import { shownText } from '../../text/shown_text.js'
import type { Tokenizer } from '../../text/tokenizer.js'
import type { Hypothesis } from '../decoding/beam_trace.js'
import { type GenerationOptions, searchesBeams } from '../decoding/generation_options.js'
import type { StreamedTokens } from '../parts/options.js'
import type { TokenCase } from '../parts/token_cases.js'

/** Reason a text ended: an end id, the token limit, or a stop string. */
export type Finish = 'end' | 'limit' | 'stop'

/** A text found by beam search. */
export interface WrittenBeam extends Hypothesis {
  readonly text: string
}

export interface Written {
  /** Text without its prompt, up to the stop string that ended it. */
  readonly text: string
  /** Token ids without an end id; for a stop string, up to the token that completed it. */
  readonly ids: readonly number[]
  /** Undefined for a stream that was left before its end. */
  readonly finish: Finish | undefined
  /** The stop string that ended the text. */
  readonly stop?: string | undefined
  /** Log-probabilities of the ids, if requested. */
  readonly logprobs?: readonly number[] | undefined
  /** The best texts, best first, if beams were requested. */
  readonly beams?: readonly WrittenBeam[] | undefined
}

/** A model that generates texts. */
export interface Writer<Options extends GenerationOptions> {
  generate(cases: readonly TokenCase[], options?: Options): Promise<readonly Result[]>
  stream(cases: readonly TokenCase[], options?: Options): AsyncIterable<Tokens>
}

interface Result {
  readonly ids: readonly number[]
  readonly finish: 'end' | 'limit'
  readonly logprobs?: readonly number[] | undefined
  readonly beams?: readonly Hypothesis[] | undefined
}

interface Tokens extends StreamedTokens {
  readonly finish?: Result['finish'] | undefined
}

/** Model, tokenizer and options of a request. */
export interface Writing<Options extends GenerationOptions> {
  readonly model: Writer<Options>
  readonly tokenizer: Tokenizer
  readonly options: Options
  readonly stop: readonly string[]
}

/** Generates a text for each prompt, in order. @throws usage `generate.*`, `run.*`; what the model throws */
export async function writtenTexts<Options extends GenerationOptions>(
  { model, tokenizer, options, stop }: Writing<Options>,
  prompts: readonly (readonly number[])[],
): Promise<Written[]> {
  const cases = prompts.map((inputIds) => ({ inputIds }))
  if (stop.length === 0 || searchesBeams(options)) {
    const results = await model.generate(cases, options)
    return results.map(({ ids, finish, logprobs, beams }) => {
      const written = cut(tokenizer, stop, ids, finish)
      return {
        ...{ ...written, ...ofIds(written.ids, logprobs) },
        ...(beams === undefined ? {} : { beams: beams.map((beam) => ({ ...beam, text: cut(tokenizer, stop, beam.ids).text })) }),
      }
    })
  }
  const shown = prompts.map(() => ({
    ...{ of: shownText(tokenizer, stop), text: '', finish: undefined as Finish | undefined },
    logprobs: undefined as readonly number[] | undefined,
  }))
  for await (const { index, ids, finish, logprobs } of model.stream(cases, options)) {
    const each = shown[index]
    if (each === undefined) continue
    each.logprobs = more(each.logprobs, logprobs)
    each.text += each.of.push(ids)
    each.finish = finish
    if (shown.every(({ of }) => of.stop !== undefined)) break
  }
  return shown.map(({ of, text, finish, logprobs }) => ({
    ...{ text: text + of.finish(), ...endOf(of, finish) },
    ...ofIds(of.ids, logprobs),
  }))
}

/** Appends the log-probabilities of further tokens. */
const more = (before: readonly number[] | undefined, next: readonly number[] | undefined) =>
  next === undefined ? before : [...(before ?? []), ...next]

/** Log-probabilities of the first `length` ids: a stop string drops some at the end. */
const ofIds = ({ length }: readonly number[], logprobs: readonly number[] | undefined) =>
  logprobs === undefined ? {} : { logprobs: logprobs.slice(0, length) }

/** Decodes ids up to a stop string. */
function cut(tokenizer: Tokenizer, stop: readonly string[], ids: readonly number[], finish?: Finish): Written {
  const shown = shownText(tokenizer, stop)
  const begun = shown.push(ids)
  return { text: begun + shown.finish(), ...endOf(shown, finish) }
}

const endOf = ({ stop, ids }: { readonly stop: string | undefined; readonly ids: readonly number[] }, finish?: Finish) =>
  stop === undefined ? { ids, finish } : { ids, finish: 'stop' as const, stop }

/** A text, and one note for each of the model's settings that was not followed. */
export interface WrittenText extends Written {
  readonly notes: readonly string[]
}

/** Pieces of a text as they are generated, in whole characters. Leaving the loop early ends the run. */
export type TextStream = AsyncGenerator<string, void> & {
  /** Text so far; complete when the loop has ended. Undefined before the first piece. */
  readonly written: WrittenText | undefined
}

/** A request with its encoded prompts and notes. */
export interface Started<Options extends GenerationOptions> extends Writing<Options> {
  readonly prompts: readonly (readonly number[])[]
  readonly notes: readonly string[]
}

/**
 * Streams the text for one prompt; the result of a beam search is returned complete.
 * @param start is called, and throws, when the first piece is requested
 */
export function streamedText<Options extends GenerationOptions>(start: () => Promise<Started<Options>>): TextStream {
  let written: WrittenText | undefined
  async function* pieces(): AsyncGenerator<string, void> {
    const { model, tokenizer, options, stop, prompts, notes } = await start()
    const shown = shownText(tokenizer, stop)
    let text = ''
    let finish: Finish | undefined
    let logprobs: readonly number[] | undefined
    const add = (piece: string): string => {
      text += piece
      written = { text, ids: [...shown.ids], finish: undefined, ...ofIds(shown.ids, logprobs), notes }
      return piece
    }
    for await (const { ids, finish: ended, logprobs: next } of model.stream([{ inputIds: prompts[0] ?? [] }], options)) {
      finish = ended
      logprobs = more(logprobs, next)
      const piece = add(shown.push(ids))
      if (piece !== '') yield piece
      if (shown.stop !== undefined) break
    }
    const rest = add(shown.finish())
    if (rest !== '') yield rest
    written = { text, ...endOf(shown, finish), ...ofIds(shown.ids, logprobs), notes }
  }
  return Object.defineProperty(pieces(), 'written', { get: () => written }) as TextStream
}
