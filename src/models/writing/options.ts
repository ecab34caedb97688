/** What a text that a model writes is asked for with, and the model's own settings beside it. */
import { usageError } from '../../errors.js'
import type { GenerationOptions } from '../decoding/generation_options.js'
import type { GenerationSettings } from '../decoding/generation_settings.js'
import { joinedSettings } from '../decoding/joined_settings.js'
import { expectOptions, type NamesOf } from '../parts/known_options.js'
import { type Started, streamedText, type TextStream, type WrittenText, writtenTexts } from './written.js'

/** Options beside those of generation. Both come before the model's own settings. */
export interface OwnOptions {
  /** Texts that end what is written, besides those of the model's settings. */
  readonly stop?: readonly string[] | undefined
  /** False leaves the model's `generation_config.json` out. */
  readonly settings?: boolean | undefined
}

/** Writes texts: of one prompt, of several that run together, or of one piece by piece. */
export interface WriteText<Options> {
  (prompt: string, options: Options & { readonly stream: true }): TextStream
  (prompt: string, options?: Options & { readonly stream?: false }): Promise<WrittenText>
  (prompts: readonly string[], options?: Options & { readonly stream?: false }): Promise<WrittenText[]>
}

const ownNames: NamesOf<OwnOptions> = { stop: true, settings: true }

/** Options of a call, taken apart. */
interface Asked<Options> {
  readonly options: Options
  readonly stop: readonly string[]
  readonly notes: readonly string[]
}

/** A function that takes options: its name, those that the model itself takes, and what it has besides. */
interface Taking<Options> {
  readonly who: string
  readonly names: NamesOf<Options>
  readonly more?: Readonly<Record<string, true>>
}

/**
 * Options joined with a model's settings.
 * @throws usage `run.option` for an unknown name; `generate.<option>` for a number of the settings that is out of range
 */
export function askedFor<Options extends GenerationOptions>(
  { who, names, more = {} }: Taking<Options>,
  given: Options & OwnOptions,
  own: { readonly settings: GenerationSettings; readonly vocab: number },
): Asked<Options> {
  expectOptions(who, { ...names, ...ownNames, ...more }, given)
  const { stop = [], settings = true } = given
  const options = Object.fromEntries(
    Object.entries(given).filter(([name, value]) => Object.hasOwn(names, name) && value !== undefined),
  )
  if (!settings) return { options: options as Options, stop, notes: [] }
  const notes: string[] = []
  const joined = joinedSettings(options, own, (line) => notes.push(line))
  return { options: joined as Options, stop: [...own.settings.stop, ...stop], notes }
}

/** @throws usage `prompt.text` for what is no text, which a caller without types may give */
function expectTexts(prompts: readonly unknown[]): void {
  for (const [at, prompt] of prompts.entries()) {
    if (typeof prompt === 'string') continue
    const what = prompt === null ? 'null' : `of type ${typeof prompt}`
    throw usageError('prompt.text', `prompt ${at} is ${what}, expected a text`, {
      hint: 'messages are of `chat`, token ids of `model.generate`',
    })
  }
}

/**
 * A function that writes texts, of what starts it.
 * @param start reads what is missing, checks what was given, and makes ids of prompts
 */
export function writerOf<Options extends GenerationOptions, Given extends OwnOptions>(
  start: (prompts: readonly string[], given: Given) => Promise<Started<Options>>,
): WriteText<Given> {
  function write(prompt: string | readonly string[], given?: Given & { readonly stream?: boolean }) {
    const { stream = false } = given ?? {}
    const single = !Array.isArray(prompt)
    const prompts = (single ? [prompt] : prompt) as readonly string[]
    const begin = async () => {
      expectTexts(prompts)
      if (stream && !single) throw usageError('run.option', `stream gives one text piece by piece, got ${prompts.length} prompts`)
      return start(prompts, given ?? ({} as Given))
    }
    return stream ? streamedText(begin) : single ? theText(begin) : allTexts(begin)
  }
  return write as WriteText<Given>
}

/** @throws what `start` and the model throw */
async function allTexts<Options extends GenerationOptions>(start: () => Promise<Started<Options>>): Promise<WrittenText[]> {
  const started = await start()
  const texts = await writtenTexts(started, started.prompts)
  return texts.map((written) => ({ ...written, notes: started.notes }))
}

/** The text behind one prompt. @throws what `start` and the model throw */
export async function theText<Options extends GenerationOptions>(start: () => Promise<Started<Options>>): Promise<WrittenText> {
  const [written] = await allTexts(start)
  if (written === undefined) throw new Error('internal: a prompt has no text')
  return written
}
