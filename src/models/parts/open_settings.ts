/**
 * Settings of an exported model that its folder leaves open: the choice of tokens, steps per run, and logit processors. They are checked
 * here because JSON is untyped. A setting that the folder fixes is refused by name.
 */
import { z } from 'zod'
import { cacheTypes } from '../../../specs/graphs/llama_caches.js'
import { noProcessors, type Processors } from '../../../specs/programs/processors.js'
import { usageError } from '../../errors.js'
import { nameHint } from '../../known_names.js'
import { mostCandidates } from '../decoding/generation_options.js'
import { saidValues } from './generator_parts.js'

export type Given = Readonly<Record<string, unknown>>

const count = z
  .int()
  .positive()
  .max(2 ** 30)
const flag = z.boolean()
const caches = z.enum(cacheTypes)
const rate = z.number().min(-1e6).max(1e6)
const stopping = z.union([z.literal(0), z.literal(1), z.literal(2)])

/** Logit processors; the tokens that a model never generates come from its folder. */
const processors = z
  .strictObject({ penalised: flag, ngrams: z.int().nonnegative(), minimum: flag, forced: flag })
  .partial()
  .transform((given): Processors => {
    const { penalised = false, ngrams = 0, minimum = false, forced = false } = given
    return { ...noProcessors, penalised, ngrams, minimum, forced }
  })

const hf = { lengthPenalty: z.number().min(-64).max(64), earlyStopping: stopping }

/**
 * Programs of a generator: one or more per choice. `topK` is the largest top-k of the few-candidate kernels, `beams` the most beams. All programs
 * have the processors, which change nothing unless a generation says so. With `logprobs` they keep the log-probability of each token.
 */
const generator = z
  .strictObject({
    choices: z.array(z.enum(['greedy', 'sample', 'beams', 'hf'])).min(1),
    topK: count.max(mostCandidates),
    beams: count.max(mostCandidates),
    processors,
    logprobs: flag,
  })
  .partial()

/** Open settings of each model program. */
export const openSettings = {
  llama: generator.extend({ caches: caches.optional() }),
  seq2seq: generator,
  bert: z.strictObject({}),
  bert_pairs: z.strictObject({}),
  seq2seq_encoder: z.strictObject({}),
  seq2seq_encoder_pairs: z.strictObject({}),
  seq2seq_decoder: z
    .strictObject({
      steps: count,
      choice: z.discriminatedUnion('kind', [
        z.strictObject({ kind: z.enum(['greedy', 'sample', 'sample_top']) }),
        z.strictObject({ kind: z.literal('beams'), maxSteps: count, diversityRate: rate.default(0) }),
        z.strictObject({ kind: z.literal('beams_hf'), maxSteps: count, ...hf }),
      ]),
      processors,
      losses: flag,
    })
    .partial(),
  llama_prompt: z.strictObject({ gives: z.enum(['nothing', 'logits', 'losses']), caches }).partial(),
  llama_step: z
    .strictObject({
      steps: count,
      choice: z.enum(['greedy', 'sample', 'sample_narrowed', 'sample_top']),
      processors,
      losses: flag,
      caches,
    })
    .partial(),
  llama_beams: z
    .strictObject({
      steps: count,
      maxSteps: count,
      rule: z.discriminatedUnion('kind', [
        z.strictObject({ kind: z.literal('plain'), diversityRate: rate.default(0) }),
        z.strictObject({ kind: z.literal('hf'), ...hf }),
      ]),
      processors,
      losses: flag,
      caches,
    })
    .partial(),
} as const

export interface GeneratorSettings {
  readonly choices: readonly ('greedy' | 'sample' | 'beams' | 'hf')[]
  readonly topK: number
  readonly beams: number
  /** Logits processors of every program; a generation sets the size of n-grams. */
  readonly processors: Omit<Processors, 'banned'>
  readonly logprobs: boolean
}

/** Settings of a generator, with defaults for those not stated. */
export function generatorSettings(
  { choices, topK, beams, processors: stated = noProcessors, logprobs = false }: OpenSettings<'seq2seq'>,
  vocab: number,
): GeneratorSettings {
  const { penalised, ngrams, minimum, forced } = stated
  return {
    processors: { penalised, ngrams: ngrams > 0 ? saidValues.no_repeat_ngram_size : 0, minimum, forced },
    logprobs,
    choices: [...new Set(choices ?? (['greedy', 'sample', 'beams', 'hf'] as const))],
    topK: topK ?? Math.min(mostCandidates, vocab),
    beams: beams ?? Math.max(1, Math.min(usualBeams, Math.floor(vocab / 2))),
  }
}

const usualBeams = 4

export type ModelProgram = keyof typeof openSettings

/** Optional fields without an explicit `undefined`. */
type Stated<T> = { readonly [K in keyof T]?: Exclude<T[K], undefined> }

export type OpenSettings<N extends ModelProgram> = Stated<z.output<(typeof openSettings)[N]>>

/**
 * Checks the open settings of a program.
 * @param stated settings of the folder, by name
 * @throws usage `export.config` for a setting that the folder fixes, that is unknown, or that is out of range
 */
export function settingsOf<N extends ModelProgram>(name: N, given: Given, stated: object): OpenSettings<N> {
  const schema = openSettings[name]
  const open = Object.keys(schema.shape)
  const fixed = Object.keys(given).find((each) => !open.includes(each) && Object.hasOwn(stated, each))
  if (fixed !== undefined)
    throw usageError('export.config', `${fixed} of ${name} is set by the model folder and cannot be overridden`, {
      hint: open.length === 0 ? 'omit --config' : `settings that can be given are ${open.join(', ')}`,
    })
  const unknown = Object.keys(given).find((each) => !open.includes(each))
  if (unknown !== undefined)
    throw usageError('export.config', `${name} has no setting ${unknown}`, { hint: nameHint('settings', open, unknown) })
  const parsed = schema.safeParse(given, { reportInput: true })
  if (parsed.success) return parsed.data as OpenSettings<N>
  const [issue] = parsed.error.issues
  throw usageError('export.config', `${name}: ${issue?.path.join('.')}: ${issue?.message}, found ${JSON.stringify(issue?.input)}`)
}
