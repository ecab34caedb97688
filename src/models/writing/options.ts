/** Options of a request for text, joined with the model's own settings. */
import { usageError } from '../../errors.js'
import type { GenerationOptions } from '../decoding/generation_options.js'
import type { GenerationSettings } from '../decoding/generation_settings.js'
import { joinedSettings } from '../decoding/joined_settings.js'
import { expectOptions, type NamesOf } from '../parts/known_options.js'
import { type Started, streamedText, type TextStream, type WrittenText, writtenTexts } from './written.js'

/** Options besides those of generation. Both take precedence over the model's own settings. */
export interface OwnOptions {
  /** Stop strings, in addition to those of the model's settings. */
  readonly stop?: readonly string[] | undefined
  /** False ignores the model's `generation_config.json`. */
  readonly settings?: boolean | undefined
}

/** Generates text for one prompt, for several that run as a batch, or for one as a stream. */
export interface WriteText<Options> {
  (prompt: string, options: Options & { readonly stream: true }): TextStream
  (prompt: string, options?: Options & { readonly stream?: false }): Promise<WrittenText>
  (prompts: readonly string[], options?: Options & { readonly stream?: false }): Promise<WrittenText[]>
}

const ownNames: NamesOf<OwnOptions> = { stop: true, settings: true }

/** Options of a call, split into generation options, stop strings and notes. */
interface ResolvedOptions<Options> {
  readonly options: Options
  readonly stop: readonly string[]
  readonly notes: readonly string[]
}

/** A function that takes options: its name, the names the model takes, and further names. */
interface Taking<Options> {
  readonly who: string
  readonly names: NamesOf<Options>
  readonly more?: Readonly<Record<string, true>>
}

/**
 * Joins options with a model's settings.
 * @throws usage `run.option` for an unknown name; `generate.<option>` for a number in the settings that is out of range
 */
export function resolveOptions<Options extends GenerationOptions>(
  { who, names, more = {} }: Taking<Options>,
  given: Options & OwnOptions,
  own: { readonly settings: GenerationSettings; readonly vocab: number },
): ResolvedOptions<Options> {
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

/** @throws usage `prompt.text` for a prompt that is not a string; an untyped caller may pass one */
function expectTexts(prompts: readonly unknown[]): void {
  for (const [at, prompt] of prompts.entries()) {
    if (typeof prompt === 'string') continue
    const what = prompt === null ? 'null' : `of type ${typeof prompt}`
    throw usageError('prompt.text', `prompt ${at} is ${what}, expected a text`, {
      hint: 'pass messages to `chat`, and token ids to `model.generate`',
    })
  }
}

/**
 * Makes a function that generates texts.
 * @param start loads missing files, checks the arguments, and encodes the prompts
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
      if (stream && !single) throw usageError('run.option', `stream takes one prompt, got ${prompts.length} prompts`)
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

/** The text generated for one prompt. @throws what `start` and the model throw */
export async function theText<Options extends GenerationOptions>(start: () => Promise<Started<Options>>): Promise<WrittenText> {
  const [written] = await allTexts(start)
  if (written === undefined) throw new Error('internal: a prompt has no text')
  return written
}
