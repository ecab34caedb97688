/**
 * Settings of HF `generation_config.json`, or of the same fields of `config.json` if a folder has no such file: the generation options
 * intended by the model's authors. They are the defaults of a caller's options. A field that cannot be followed is reported.
 */
import { join } from 'node:path'
import { z } from 'zod'
import { checkFields, readOptionalConfigFile } from '../../checkpoint/config_file.js'
import { shown } from '../../checkpoint/safetensors_header.js'
import type { GenerationOptions } from './generation_options.js'

export interface GenerationSettings {
  /** Settings as `GenerationOptions`. Missing fields have HF's defaults, so that a file means the same here as in HF. */
  readonly options: GenerationOptions
  /** Stop strings. */
  readonly stop: readonly string[]
  /** The file, for messages. */
  readonly file: string
  /** Messages about settings in the file that are not supported: one line per field. */
  readonly ignored: readonly string[]
}

const count = z.int().nonnegative()
const number = z.number()

const schema = z.looseObject({
  do_sample: z.boolean().nullish(),
  temperature: number.nullish(),
  top_k: count.nullish(),
  top_p: number.nullish(),
  min_p: number.nullish(),
  repetition_penalty: number.nullish(),
  no_repeat_ngram_size: count.nullish(),
  max_new_tokens: count.nullish(),
  min_new_tokens: count.nullish(),
  num_beams: count.nullish(),
  num_return_sequences: count.nullish(),
  length_penalty: number.nullish(),
  early_stopping: z.union([z.boolean(), z.literal('never')]).nullish(),
  max_length: count.nullish(),
  min_length: count.nullish(),
  stop_strings: z.union([z.string(), z.array(z.string())]).nullish(),
  forced_bos_token_id: count.nullish(),
  forced_eos_token_id: z.union([count, z.array(count).min(1)]).nullish(),
})

type Fields = z.output<typeof schema>

/** Fields that are read elsewhere, or that concern the file's origin and HF's own code. */
const otherwise = new Set([
  ...['bos_token_id', 'eos_token_id', 'pad_token_id', 'decoder_start_token_id'],
  ...['bad_words_ids', 'suppress_tokens'],
  ...['transformers_version', '_from_model_config', 'use_cache', 'return_dict_in_generate', 'renormalize_logits'],
  ...['output_attentions', 'output_hidden_states', 'output_scores', 'output_logits', 'cache_implementation', 'cache_config'],
  ...['compile_config', 'disable_compile', 'generation_kwargs', 'chat_format', 'max_window_size'],
])

/** Neutral values, which request nothing. */
const neutral: Readonly<Record<string, unknown>> = {
  ...{
    typical_p: 1,
    epsilon_cutoff: 0,
    eta_cutoff: 0,
    encoder_repetition_penalty: 1,
    guidance_scale: 1,
  },
  ...{ encoder_no_repeat_ngram_size: 0, diversity_penalty: 0, num_beam_groups: 1, top_h: 0, token_healing: false },
  ...{ remove_invalid_values: false, low_memory: false, is_assistant: false },
}

/** HF's default `top_k` for sampling. */
const usualTopK = 50

/** Generation fields that a `config.json` may have instead. */
const legacyFields = [
  ...Object.keys(schema.shape),
  ...Object.keys(neutral),
  ...['exponential_decay_length_penalty', 'begin_suppress_tokens'],
]

const pick = (value: unknown, names: readonly string[]): object =>
  typeof value === 'object' && value !== null
    ? Object.fromEntries(Object.entries(value).filter(([name]) => names.includes(name)))
    : {}

/** Limits of a model with a separate decoder. Its `max_length` and `min_length` count the start token and generated tokens, without a prompt. */
export interface DecoderLimit {
  /** Number of positions of the decoder. */
  readonly positions: number
  /** Forced last token of truncated texts: the default of HF's configuration class if an old `config.json` has none. */
  readonly classEnd?: number | undefined
}

/**
 * Reads the settings of a model folder; those of an empty file if it has none.
 * @param decoder undefined for a model that continues its prompt
 * @throws usage `config.read`, `config.json`, `config.field`
 */
export async function readGenerationSettings(dir: string, decoder?: DecoderLimit): Promise<GenerationSettings> {
  const path = join(dir, 'generation_config.json')
  const own = await readOptionalConfigFile(path)
  if (own !== undefined) return parseGenerationSettings(own, path, decoder)
  const config = join(dir, 'config.json')
  const stated = pick(await readOptionalConfigFile(config), legacyFields)
  const { classEnd } = decoder ?? {}
  // An explicit null means no forced token.
  const legacy = classEnd === undefined ? stated : { forced_eos_token_id: classEnd, ...stated }
  return parseGenerationSettings(legacy, Object.keys(legacy).length > 0 ? config : path, decoder)
}

/** Checks parsed settings; `name` is used in messages. @throws usage `config.field` */
export function parseGenerationSettings(value: unknown, name: string, decoder?: DecoderLimit): GenerationSettings {
  const fields = checkFields(schema, value, name)
  const { stop_strings: stop } = fields
  return {
    options: Object.fromEntries(Object.entries(optionsOf(fields, decoder)).filter(([, option]) => option != null)),
    stop: typeof stop === 'string' ? [stop] : (stop ?? []),
    file: name,
    ignored: [...unknown(fields, name), ...notDone(fields, name, decoder), ...unused(fields, name)],
  }
}

/** Clamps `topK` to the vocabulary: HF's default and the file's value may exceed it. */
export const optionsWithin = (options: GenerationOptions, vocab: number): GenerationOptions =>
  options.topK === undefined ? options : { ...options, topK: Math.min(options.topK, vocab) }

const searches = ({ num_beams: beams }: Fields): boolean => (beams ?? 1) > 1

/** Maps fields to options. Sampling fields have no effect without `do_sample`: HF then chooses the best token. */
function optionsOf(fields: Fields, decoder: DecoderLimit | undefined) {
  const unless = <T>(value: T, neutral: T): T | undefined => (value === neutral ? undefined : value)
  const { max_length: longest, min_length: shortest } = fields
  const generated = (length: number): number => Math.max(0, length - 1)
  const most = decoder === undefined || longest == null ? undefined : Math.max(1, generated(Math.min(longest, decoder.positions)))
  const least = decoder === undefined || shortest == null ? undefined : generated(shortest)
  return {
    maxNewTokens: fields.max_new_tokens ?? most,
    minNewTokens: unless(fields.min_new_tokens ?? least, 0),
    repetitionPenalty: unless(fields.repetition_penalty, 1),
    noRepeatNgramSize: unless(fields.no_repeat_ngram_size, 0),
    forcedBosTokenId: fields.forced_bos_token_id,
    forcedEosTokenId: fields.forced_eos_token_id,
    ...(searches(fields)
      ? {
          beams: fields.num_beams,
          rule: 'hf',
          returned: unless(fields.num_return_sequences, 1),
          lengthPenalty: fields.length_penalty,
          earlyStopping: fields.early_stopping,
        }
      : {
          ...(fields.do_sample === true && {
            temperature: fields.temperature ?? 1,
            topK: fields.top_k ?? usualTopK,
            topP: unless(fields.top_p, 1),
            minP: unless(fields.min_p, 0),
          }),
        }),
  }
}

const text = (value: unknown): string => shown(JSON.stringify(value))

/** Reports fields that are unknown or not supported. */
const unknown = (fields: Fields, name: string): string[] =>
  Object.entries(fields)
    .filter(([field]) => !Object.hasOwn(schema.shape, field) && !otherwise.has(field))
    .filter(([field, value]) => value != null && !(Object.hasOwn(neutral, field) && neutral[field] === value) && !isEmpty(value))
    .map(([field, value]) => `${name}: ${shown(field)} ${text(value)} is not supported and is ignored`)

/** HF's default `max_length`, which requests nothing. */
const usualLength = 20

/** Reports fields that this kind of model does not support. */
function notDone(fields: Fields, name: string, decoder: DecoderLimit | undefined): string[] {
  const requested = (field: keyof Fields, neutral: unknown): (keyof Fields)[] =>
    fields[field] == null || fields[field] === neutral ? [] : [field]
  const never =
    decoder === undefined
      ? [...requested('max_length', usualLength), ...requested('min_length', 0)]
      : requested('stop_strings', '')
  return never.map((field) => `${name}: ${field} ${text(fields[field])} is not supported and is ignored`)
}

const isEmpty = (value: unknown): boolean => typeof value === 'object' && value !== null && Object.keys(value).length === 0

/** Reports fields that have no effect in combination with others. */
function unused(fields: Fields, name: string): string[] {
  const noEffect = (field: string, value: unknown, why: string) => `${name}: ${field} ${text(value)} has no effect ${why}`
  const sampling = (['temperature', 'top_k', 'top_p', 'min_p'] as const).filter((field) => {
    const value = fields[field]
    return value != null && value !== { temperature: 1, top_k: usualTopK, top_p: 1, min_p: 0 }[field]
  })
  if (searches(fields) && fields.do_sample === true) {
    return [noEffect('do_sample', true, `with num_beams ${fields.num_beams}: beam search does not sample`)]
  }
  return fields.do_sample === true ? [] : sampling.map((field) => noEffect(field, fields[field], 'without do_sample'))
}
