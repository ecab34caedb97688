/**
 * Texts that a model writes, from the token ids of prompts: whole, or piece by piece. What a stop string ends is not waited for, and
 * nothing of it is shown.
 */
import { shownText } from '../../text/shown_text.js'
import type { Tokenizer } from '../../text/tokenizer.js'
import type { Hypothesis } from '../decoding/beam_trace.js'
import { type GenerationOptions, searchesBeams } from '../decoding/generation_options.js'
import type { StreamedTokens } from '../parts/options.js'
import type { TokenCase } from '../parts/token_cases.js'

/** What ended a text: an end id, the limit of tokens, or a stop string. */
export type Finish = 'end' | 'limit' | 'stop'

/** A text of a search with beams. */
export interface WrittenBeam extends Hypothesis {
  readonly text: string
}

export interface Written {
  /** Without its prompt, and up to the stop string that ended it. */
  readonly text: string
  /** Without an end id; of a stop string, up to the token that completed it. */
  readonly ids: readonly number[]
  /** Undefined of a stream that was left before its end. */
  readonly finish: Finish | undefined
  /** The stop string that ended it. */
  readonly stop?: string | undefined
  /** Log-probabilities of the ids, where they were asked for. */
  readonly logprobs?: readonly number[] | undefined
  /** The best texts, best first, where beams were asked for. */
  readonly beams?: readonly WrittenBeam[] | undefined
}

/** A model as texts are written by it. */
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

/** What is written with. */
export interface Writing<Options extends GenerationOptions> {
  readonly model: Writer<Options>
  readonly tokenizer: Tokenizer
  readonly options: Options
  readonly stop: readonly string[]
}

/** @returns a text for each prompt, in order. @throws usage `generate.*`, `run.*`; what the model throws */
export async function writtenTexts<Options extends GenerationOptions>(
  { model, tokenizer, options, stop }: Writing<Options>,
  prompts: readonly (readonly number[])[],
): Promise<Written[]> {
  const cases = prompts.map((inputIds) => ({ inputIds }))
  if (stop.length === 0 || searchesBeams(options)) {
    const results = await model.generate(cases, options)
    return results.map(({ ids, finish, logprobs, beams }) => ({
      ...cut(tokenizer, stop, ids, finish),
      ...(logprobs === undefined ? {} : { logprobs }),
      ...(beams === undefined ? {} : { beams: beams.map((beam) => ({ ...beam, text: cut(tokenizer, stop, beam.ids).text })) }),
    }))
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

/** Log-probabilities with those of further tokens. */
const more = (before: readonly number[] | undefined, next: readonly number[] | undefined) =>
  next === undefined ? before : [...(before ?? []), ...next]

/** Those of the ids that a text has, of which a stop string leaves some out. */
const ofIds = ({ length }: readonly number[], logprobs: readonly number[] | undefined) =>
  logprobs === undefined ? {} : { logprobs: logprobs.slice(0, length) }

/** Ids as a text up to a stop string. */
function cut(tokenizer: Tokenizer, stop: readonly string[], ids: readonly number[], finish?: Finish): Written {
  const shown = shownText(tokenizer, stop)
  const begun = shown.push(ids)
  return { text: begun + shown.finish(), ...endOf(shown, finish) }
}

const endOf = ({ stop, ids }: { readonly stop: string | undefined; readonly ids: readonly number[] }, finish?: Finish) =>
  stop === undefined ? { ids, finish } : { ids, finish: 'stop' as const, stop }

/** A text, and what of the model's settings was not followed: a line each. */
export interface WrittenText extends Written {
  readonly notes: readonly string[]
}

/** Pieces of a text as they come: whole characters. Leaving the loop early ends the work. */
export type TextStream = AsyncGenerator<string, void> & {
  /** What was written so far; whole when the loop has ended. Undefined before the first piece. */
  readonly written: WrittenText | undefined
}

/** What texts are written with, and behind which prompts. */
export interface Started<Options extends GenerationOptions> extends Writing<Options> {
  readonly prompts: readonly (readonly number[])[]
  readonly notes: readonly string[]
}

/**
 * The text behind one prompt, piece by piece; one that beams are searched for comes whole.
 * @param start is called when the first piece is asked for, and what it throws is thrown then
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
