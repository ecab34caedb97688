/** `heddle run`: runs cases through a model. Everything is checked before the model runs, and output is written when it is complete. */
import { resolve } from 'node:path'
import { Option } from '@commander-js/extra-typings'
import { usageError } from '../errors.js'
import { type Encoder, type EncoderResult, poolings } from '../models/encoder/encoder_pipeline.js'
import { restorePunctuation } from '../models/encoder/punctuation.js'
import { named } from '../models/parts/known_options.js'
import { namedFile } from '../output.js'
import { loadTokenizer } from '../text/tokenizer.js'
import { type Truncation, truncations } from '../text/truncation.js'
import { type Case, readCases } from './cases.js'
import { talk } from './chat.js'
import type { CliContext } from './context.js'
import { continuesText } from './continues_text.js'
import { type GenerateVerbOptions, generatesText, generateTexts } from './generate.js'
import { expectNoGeneration, generationCommand } from './generation_flags.js'
import { continueTexts, expectNoContinuing } from './llama.js'
import type { LlamaFlagOptions } from './llama_flags.js'
import { llamaOptions } from './llama_options.js'
import { positive } from './options.js'
import {
  deviceOption,
  dtypes,
  expectFolder,
  onOption,
  openOptions,
  openPipeline,
  type Pipeline,
  type PipelineOptions,
  pipelineNames,
  planText,
} from './pipeline.js'
import { type TalkOptions, talkOptions } from './talk_options.js'
import { tokenIds } from './token_ids.js'

export interface RunVerbOptions extends GenerateVerbOptions, LlamaFlagOptions, TalkOptions {
  readonly text?: string | undefined
  /** A second text, which the model reads after `text`. */
  readonly pair?: string | undefined
  /** Truncation of cases with more tokens than the model has positions; if undefined, they are refused. */
  readonly truncate?: Truncation['how'] | undefined
  /** Prints embeddings of texts, pooled this way, instead of the model's usual results; `stated`: the pooling of the model's folder. */
  readonly pooling?: PoolingFlag | undefined
  /** True to normalise embeddings to unit length. */
  readonly normalize?: boolean | undefined
  /** Number that is added to scores of removed pairs, and number that is added to the softmax's denominator, as in FasterTransformer. */
  readonly maskValue?: number | undefined
  readonly softmaxEps?: number | undefined
  /** A file with one case per line. */
  readonly cases?: string | undefined
  /** Prints a JSON line instead of the punctuated text, if `text` is given. */
  readonly json?: boolean | undefined
  /** A file instead of stdout: written whole or not at all. */
  readonly out?: string | undefined
}

const poolingFlags = [...poolings, 'stated'] as const
type PoolingFlag = (typeof poolingFlags)[number]

/** Shortest decimal with the same float32 value. */
export function compact(value: number): number {
  for (let digits = 6; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits))
    if (Math.fround(short) === value) return short
  }
  return Number(value.toPrecision(9))
}

const compactRow = (row: Float32Array): number[] => Array.from(row, compact)

/** One result as a JSON line. */
const resultLine = (result: EncoderResult): string => `${JSON.stringify(fieldsOf(result))}\n`

function fieldsOf(result: EncoderResult): Readonly<Record<string, unknown>> {
  switch (result.kind) {
    case 'token-classifier':
      return { labels: result.labelIds, logits: result.logits.map(compactRow) }
    case 'sequence-classifier':
      return { label: result.labelId, logits: compactRow(result.logits[0]) }
    case 'question-answering':
      return { begins: compactRow(result.begins), ends: compactRow(result.ends) }
    case 'encoder':
      return { states: result.states.map(compactRow), pooled: result.pooled === undefined ? null : compactRow(result.pooled) }
  }
}

/** True if every label is empty or a punctuation mark, so that a result can be printed as text. */
const marksText = ({ config: { labels } }: Encoder): boolean =>
  labels.length > 1 && labels.every((label) => label === 'O' || /^\p{P}$/u.test(label))

/** @throws usage `run.option` for pairs and truncation, which models that generate text do not support */
function expectWholeTexts(cases: readonly Case[], { truncate }: RunVerbOptions): void {
  const [given] = [
    ...(truncate === undefined ? [] : ['--truncate']),
    ...cases.flatMap((item) => ('pair' in item && item.pair !== undefined ? ['a pair of texts'] : [])),
  ]
  if (given !== undefined) throw usageError('run.option', `${given} applies to models that classify, and this one generates text`)
}

/** Options of encoders, and their flags. */
const poolingNames = [['pooling', '--pooling'] as const, ['normalize', '--normalize'] as const]
const maskingNames = [['maskValue', '--mask-value'] as const, ['softmaxEps', '--softmax-eps'] as const]

/** @throws usage `run.option` for a given option, such as one of embeddings without `--pooling` */
function expectNone(
  options: RunVerbOptions,
  names: readonly (readonly ['pooling' | 'normalize' | 'maskValue' | 'softmaxEps', string])[],
  why: string,
): void {
  const given = names.find(([name]) => options[name] !== undefined)
  if (given !== undefined) throw usageError('run.option', `${given[1]} ${why}`)
}

/** One line per case. @throws usage `run.case` for a pair of texts or a conversation */
async function embeddingLines(
  { embed }: Pipeline,
  cases: readonly Case[],
  { pooling, normalize, truncate, settings, batch }: RunVerbOptions,
  signal: AbortSignal,
): Promise<string> {
  const inputs = cases.map((item, i) => {
    if ('input_ids' in item) return { inputIds: item.input_ids, typeIds: item.token_type_ids, attentionMask: item.attention_mask }
    if ('text' in item && item.pair === undefined) return item.text
    throw usageError(
      'run.case',
      `case ${i}: expected one text to embed, got ${'text' in item ? 'a pair of texts' : 'a conversation'}`,
    )
  })
  const rows = await embed(inputs, {
    ...{ pooling: pooling === 'stated' ? undefined : pooling, normalize, settings, signal },
    ...(batch === undefined ? {} : { batch }),
    ...(truncate === undefined ? {} : { truncate: true }),
  })
  return rows.map((row) => `${JSON.stringify({ embedding: compactRow(row) })}\n`).join('')
}

/** @returns the output text. @throws usage `run.*`, `plan.unknown`, …; environment for missing tools or devices */
export async function run(model: string, options: RunVerbOptions, context: CliContext): Promise<string> {
  const { text, cases: file } = options
  if (text === undefined && file === undefined) {
    throw usageError('run.input', 'nothing to run', { hint: 'give --text TEXT or --cases FILE.jsonl, or --chat' })
  }
  if (text !== undefined && text.trim() === '') throw usageError('run.empty', 'empty batch: the text is empty')
  if (options.pair?.trim() === '') throw usageError('run.empty', 'empty batch: the second text is empty')
  const cases: readonly Case[] =
    file === undefined ? [{ text: text ?? '', pair: options.pair }] : await readCases(file, context.signal)
  const folder = resolve(context.root, model)
  expectFolder(folder)
  if (await continuesText(folder)) {
    expectNone(options, [...poolingNames, ...maskingNames], 'applies to encoders, and this model generates text')
    expectWholeTexts(cases, options)
    return continueTexts(folder, cases, options, context)
  }
  const generates = await generatesText(folder)
  const embeds = options.pooling !== undefined
  expectNoContinuing(generates || embeds ? { ...options, settings: undefined } : options)
  if (generates) {
    expectNone(options, [...poolingNames, ...maskingNames], 'applies to encoders, and this model generates text')
    expectWholeTexts(cases, options)
    return generateTexts(folder, cases, options, context)
  }
  expectNoGeneration(options)
  if (!embeds) expectNone(options, poolingNames, 'needs --pooling')
  const pipeline = await openPipeline(
    folder,
    { ...named<PipelineOptions>(pipelineNames, options), ...maskingOf(options), signal: context.signal },
    context.root,
    openOptions(context, { on: options.on, who: 'run' }),
  )
  try {
    const { encoder } = pipeline
    context.log(
      `${pipeline.device.info().name} (${pipeline.device.kind}), ${encoder.dtype}, ${planText(encoder.plan, pipeline.planReason)}\n`,
    )
    const { headless } = encoder.config
    if (headless !== undefined) context.log(`the head of ${headless} is not run: results are the states of tokens\n`)
    const runOptions = { signal: context.signal, ...(options.batch === undefined ? {} : { batch: options.batch }) }
    if (embeds) return await embeddingLines(pipeline, cases, options, context.signal)
    if (text !== undefined && options.pair === undefined && !options.json && marksText(encoder)) {
      return `${await restorePunctuation(encoder, await loadTokenizer(folder), text, runOptions)}\n`
    }
    const { tokenTypes, positions } = encoder.config
    const truncate = options.truncate === undefined ? undefined : { how: options.truncate, most: positions }
    const results = await encoder.run(await tokenIds(folder, cases, { tokenTypes, truncate }), runOptions)
    return results.map(resultLine).join('')
  } finally {
    pipeline.close()
  }
}

/** FasterTransformer's arithmetic of masks, if one of its numbers is given. */
const maskingOf = ({ maskValue, softmaxEps }: Pick<RunVerbOptions, 'maskValue' | 'softmaxEps'>) =>
  maskValue === undefined && softmaxEps === undefined
    ? {}
    : { masking: { ...(maskValue !== undefined && { maskValue }), ...(softmaxEps !== undefined && { softmaxEps }) } }

/** @throws usage `run.option` for options that do not apply to a conversation, and for models without conversations */
async function chat(model: string, options: RunVerbOptions, context: CliContext): Promise<void> {
  const ofCases = ['text', 'pair', 'cases', 'out', 'json', 'truncate', 'withPrompt', 'batch'] as const
  const names = [...ofCases, 'pooling', 'normalize', 'maskValue', 'softmaxEps'] as const
  const given = names.find((name) => options[name] !== undefined)
  if (given !== undefined) throw usageError('run.option', `--chat reads the standard input and does not combine with ${given}`)
  const path = resolve(context.root, model)
  expectFolder(path)
  if (!(await continuesText(path))) expectNoContinuing(options)
  await talk(path, options, context)
}

export const runCommand = (context: () => CliContext) =>
  talkOptions(llamaOptions(generationCommand('run')))
    .description('run a model on a text or on a file of cases')
    .argument('<model>', 'a folder with config.json, model.safetensors and tokenizer.json')
    .addOption(new Option('--text <text>', 'one text').conflicts('cases'))
    .addOption(new Option('--pair <text>', 'a second text after the first, such as the context of a question').conflicts('cases'))
    .option(
      '--cases <file>',
      'one {"input_ids":[...]}, {"text":"..."}, {"text":"...","pair":"..."} or {"messages":[...]} per line',
    )
    .addOption(
      new Option(
        '--truncate <how>',
        'truncate texts with more tokens than the model has positions; default: refuse them',
      ).choices(truncations),
    )
    .addOption(
      new Option(
        '--pooling <how>',
        "print embeddings: the mean of tokens, the first or the last; stated: the pooling of the model's folder",
      ).choices(poolingFlags),
    )
    .option('--normalize', 'normalise embeddings to unit length')
    .addOption(deviceOption())
    .addOption(onOption())
    .addOption(new Option('--dtype <dtype>', 'storage type of weights and activations').choices(dtypes))
    .option('--plan <name>', 'fusion plan; default: chosen by model, device and storage type')
    .option('--scales <file>', 'a file from `heddle calibrate` for the model, for quantised plans')
    .option('--mask-value <x>', 'number that is added to scores of removed pairs, as in FasterTransformer: -10000', Number)
    .option('--softmax-eps <x>', "number that is added to the softmax's denominator, as in FasterTransformer: 1e-6", Number)
    .option('--batch <count>', 'cases per batch', positive)
    .option('--out <file>', 'write the result to a file')
    .option('--json', 'print one JSON line per case')
    .action(async (model, options) => {
      if (options.chat) return chat(model, options, context())
      const write = options.out === undefined ? context().out : await namedFile(resolve(context().root, options.out))
      await write(await run(model, options, context()))
    })
