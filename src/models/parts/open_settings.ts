/**
 * Settings of an exported model that its folder leaves open: how words are chosen, steps of a run, what logits are changed by. They are checked
 * here, since JSON has no types; a setting that the folder says is refused by its name.
 */
import { z } from 'zod'
import { noProcessors, type Processors } from '../../../specs/programs/processors.js'
import { usageError } from '../../errors.js'
import { nameHint } from '../../known_names.js'
import { mostCandidates } from '../decoding/generation_options.js'

export type Given = Readonly<Record<string, unknown>>

const count = z
  .int()
  .positive()
  .max(2 ** 30)
const flag = z.boolean()
const rate = z.number().min(-1e6).max(1e6)
const stopping = z.union([z.literal(0), z.literal(1), z.literal(2)])

/** Processors of logits; words that a model never says are those of its folder. */
const processors = z
  .strictObject({ penalised: flag, ngrams: z.int().nonnegative(), minimum: flag, forced: flag })
  .partial()
  .transform((given): Processors => {
    const { penalised = false, ngrams = 0, minimum = false, forced = false } = given
    return { ...noProcessors, penalised, ngrams, minimum, forced }
  })

const hf = { lengthPenalty: z.number().min(-64).max(64), earlyStopping: stopping }

/** Programs that a generator has: one or more for each choice; a top-k of few words and beams up to these. */
const generator = z
  .strictObject({
    choices: z.array(z.enum(['greedy', 'sample', 'beams', 'hf'])).min(1),
    topK: count.max(mostCandidates),
    beams: count.max(mostCandidates),
  })
  .partial()

/** Settings that are open, by the programs of models. */
export const openSettings = {
  llama: generator,
  seq2seq: generator,
  bert: z.strictObject({}),
  bert_pairs: z.strictObject({}),
  seq2seq_encoder: z.strictObject({}),
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
  llama_prompt: z.strictObject({ gives: z.enum(['nothing', 'logits', 'losses']), int8Caches: flag }).partial(),
  llama_step: z
    .strictObject({
      steps: count,
      choice: z.enum(['greedy', 'sample', 'sample_narrowed', 'sample_top']),
      processors,
      losses: flag,
      int8Caches: flag,
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
      int8Caches: flag,
    })
    .partial(),
} as const

export interface GeneratorSettings {
  readonly choices: readonly ('greedy' | 'sample' | 'beams' | 'hf')[]
  readonly topK: number
  readonly beams: number
}

/** With what is usual where nothing is stated. */
export function generatorSettings({ choices, topK, beams }: OpenSettings<'llama'>, vocab: number): GeneratorSettings {
  return {
    choices: [...new Set(choices ?? (['greedy', 'sample', 'beams', 'hf'] as const))],
    topK: topK ?? Math.min(mostCandidates, vocab),
    beams: beams ?? Math.max(1, Math.min(usualBeams, Math.floor(vocab / 2))),
  }
}

const usualBeams = 4

export type ModelProgram = keyof typeof openSettings

/** Without what is left out. */
type Stated<T> = { readonly [K in keyof T]?: Exclude<T[K], undefined> }

export type OpenSettings<N extends ModelProgram> = Stated<z.output<(typeof openSettings)[N]>>

/**
 * The open settings of a program, checked.
 * @param said settings of the folder, by their names
 * @throws usage `export.config` for one that the folder says, that is unknown, or that is out of its range
 */
export function settingsOf<N extends ModelProgram>(name: N, given: Given, said: object): OpenSettings<N> {
  const schema = openSettings[name]
  const open = Object.keys(schema.shape)
  const fixed = Object.keys(given).find((each) => !open.includes(each) && Object.hasOwn(said, each))
  if (fixed !== undefined)
    throw usageError('export.config', `${fixed} of ${name} is what the model folder says, and cannot be stated beside it`, {
      hint: open.length === 0 ? 'leave --config out' : `settings that can be stated are ${open.join(', ')}`,
    })
  const unknown = Object.keys(given).find((each) => !open.includes(each))
  if (unknown !== undefined)
    throw usageError('export.config', `${name} has no setting ${unknown}`, { hint: nameHint('settings', open, unknown) })
  const parsed = schema.safeParse(given, { reportInput: true })
  if (parsed.success) return parsed.data as OpenSettings<N>
  const [issue] = parsed.error.issues
  throw usageError('export.config', `${name}: ${issue?.path.join('.')}: ${issue?.message}, found ${JSON.stringify(issue?.input)}`)
}
