/** `heddle run` of a model that generates text: its options, and results as lines. */
import { join } from 'node:path'
import { Command, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import { z } from 'zod'
import { readConfigFile } from '../checkpoint/config_file.js'
import { usageError } from '../errors.js'
import { seq2seqLayers } from '../models/assembly/layer_graphs.js'
import type { Hypothesis } from '../models/decoding/beam_trace.js'
import type { GenerationOptions } from '../models/decoding/generation_options.js'
import { expectOptions, named } from '../models/parts/known_options.js'
import { readSeq2seqConfig } from '../models/seq2seq/seq2seq_config.js'
import { type GenerationResult, loadSeq2seq, type Seq2seq } from '../models/seq2seq/seq2seq_pipeline.js'
import { choosePlan } from '../runtime/default_plan.js'
import type { Device } from '../runtime/device.js'
import { type OpenOptions, openKernels } from '../runtime/open.js'
import { loadTokenizer, type Tokenizer } from '../text/tokenizer.js'
import type { Case } from './cases.js'
import type { CliContext } from './context.js'
import { continuesText } from './continues_text.js'
import { expectFolder, openOptions, type PipelineOptions, pipelineNames, planText } from './pipeline.js'
import { tokenIds } from './token_ids.js'

/** Options of generation as the command line has them. */
export interface GenerationFlags {
  readonly beam?: number | undefined
  readonly return?: number | undefined
  readonly lengthPenalty?: number | undefined
  readonly earlyStopping?: boolean | 'never' | undefined
  readonly diversityRate?: number | undefined
  readonly topK?: number | undefined
  readonly topP?: number | undefined
  readonly minP?: number | undefined
  readonly temperature?: number | undefined
  readonly repetitionPenalty?: number | undefined
  readonly seed?: number | undefined
  readonly maxNewTokens?: number | undefined
  readonly minNewTokens?: number | undefined
}

export interface GenerateVerbOptions extends PipelineOptions, GenerationFlags {
  /** Cases run together. */
  readonly batch?: number | undefined
}

/** A number as it is written; what it may be is checked where it is used. */
function number(text: string): number {
  const value = Number(text)
  if (text.trim() === '' || Number.isNaN(value)) throw new InvalidArgumentError('Expected a number.')
  return value
}

const stopping = { false: false, true: true, never: 'never' } as const

/** A command with the options of generation. */
export const generationCommand = (name: string) =>
  new Command(name)
    .option('--beams, --beam <count>', 'hypotheses followed side by side', number)
    .option('--return <count>', 'hypotheses returned of each case', number)
    .option('--length-penalty <x>', 'finished beams compare by sum / length^x, as Hugging Face has it', number)
    .addOption(
      new Option('--early-stopping <when>', 'when finished beams are enough')
        .choices(['false', 'true', 'never'] as const)
        .argParser((text: string): boolean | 'never' => {
          if (text === 'false' || text === 'true' || text === 'never') return stopping[text]
          throw new InvalidArgumentError('Allowed choices are false, true, never.')
        }),
    )
    .option('--diversity-rate <x>', 'added to a word for each better one of its beam; below 0 beams differ more', number)
    .option('--top-k <count>', 'draw from the likeliest words', number)
    .option('--top-p <mass>', 'draw from the likeliest words with this probability together', number)
    .option('--min-p <share>', 'draw from words at least so probable, relative to the likeliest', number)
    .option('--temperature <x>', 'divides logits before a draw', number)
    .option('--repetition-penalty <x>', 'makes words that were chosen before less likely', number)
    .option('--seed <integer>', 'of the draws', number)
    .option('--max-new-tokens <count>', 'tokens generated at most', number)
    .option('--min-new-tokens <count>', 'tokens generated before an end id may be', number)

const modelType = z.looseObject({ model_type: z.string().optional() })

/** Whether a folder holds a model that generates text, by its configuration. @throws usage `config.read`, `config.json` */
export async function generatesText(folder: string): Promise<boolean> {
  const parsed = modelType.safeParse(await readConfigFile(join(folder, 'config.json')))
  return parsed.success && ['pegasus', 'marian'].includes(parsed.data.model_type ?? '')
}

export const flagNames: readonly (keyof GenerationFlags)[] = [
  'beam',
  'return',
  'lengthPenalty',
  'earlyStopping',
  'diversityRate',
  'topK',
  'topP',
  'minP',
  'temperature',
  'repetitionPenalty',
  'seed',
  'maxNewTokens',
  'minNewTokens',
]

/** @throws usage `run.option` for an option of generation given to a model that generates nothing */
export function expectNoGeneration(options: GenerationFlags): void {
  const given = flagNames.find((name) => options[name] !== undefined)
  if (given === undefined) return
  const flag = given.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
  throw usageError('run.option', `--${flag} is of models that generate text, and this one does not`)
}

/** What the pipeline is asked for. */
export function generationOf(flags: GenerationFlags): GenerationOptions {
  const { beam, return: returned, ...rest } = flags
  const options = { ...rest, beams: beam, returned }
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
}

/** Hypotheses as a JSON line has them. */
export const beamsShown = (beams: readonly Hypothesis[]) =>
  beams.map(({ ids, cumLogProb }) => ({ ids, cumLogProb: Number(cumLogProb.toPrecision(7)) }))

/** One result as a JSON line: ids without start and end ids. */
export function generationLine({ ids, beams }: GenerationResult, tokenizer: Tokenizer | undefined): string {
  const text = tokenizer === undefined ? {} : { text: tokenizer.decode(ids) }
  const hypotheses = beams === undefined ? {} : { beams: beamsShown(beams) }
  return `${JSON.stringify({ ids, ...text, ...hypotheses })}\n`
}

/** @throws usage `config.model_type` for a LLaMA-like model, which has an opening of its own; `config.read`, `config.json` */
async function expectGenerating(folder: string): Promise<void> {
  if (!(await continuesText(folder))) return
  throw usageError('config.model_type', `${folder} is a LLaMA-like model, openGenerator opens Pegasus and Marian`, {
    hint: "open it with openLlama of 'heddle/commands'",
  })
}

/** An open model that generates text. */
export interface Generator {
  readonly device: Device
  readonly model: Seq2seq
  /** Why the model's plan was taken; undefined where it was asked for. */
  readonly planReason: string | undefined
  close(): void
}

/**
 * Opens the folder of a model that generates text on a device. Close it to free the device.
 * @param root the project whose kernels run; the current folder by default
 * @param opening who is told what is compiled, and what cancels it
 * @throws usage for an unknown option, and for a model, plan or dtype that cannot be used; environment for a missing device, addon or compiler
 */
export async function openGenerator(
  folder: string,
  options: PipelineOptions = {},
  root: string = process.cwd(),
  opening: Omit<OpenOptions, 'root'> = {},
): Promise<Generator> {
  expectOptions('openGenerator', pipelineNames, options)
  const { device, dtype, plan, scales, signal } = options
  if (scales !== undefined) throw usageError('run.option', '--scales is of quantised encoders, and this model is none')
  expectFolder(folder)
  await expectGenerating(folder)
  const kernels = await openKernels(device, { ...opening, root, model: folder })
  try {
    const chosen =
      plan === undefined
        ? choosePlan(kernels.manifest, kernels.device.info(), dtype ?? 'f32', seq2seqLayers(await readSeq2seqConfig(folder)))
        : undefined
    const named = plan ?? chosen?.name
    const model = await loadSeq2seq(folder, {
      ...kernels,
      ...(dtype === undefined ? {} : { dtype }),
      ...(named === undefined ? {} : { plan: named }),
      signal,
    })
    return {
      device: kernels.device,
      model,
      planReason: chosen?.reason,
      close() {
        model.release()
        kernels.device.close()
      },
    }
  } catch (error) {
    kernels.device.close()
    throw error
  }
}

/** Runs cases and returns a line for each. @throws usage `generate.*`, `run.*`; environment for what the machine lacks */
export async function generateTexts(
  folder: string,
  cases: readonly Case[],
  options: GenerateVerbOptions & { readonly json?: boolean | undefined; readonly text?: string | undefined },
  context: CliContext,
): Promise<string> {
  const { batch } = options
  const inputs = await tokenIds(folder, cases)
  const { device, model, planReason, close } = await openGenerator(
    folder,
    { ...named<PipelineOptions>(pipelineNames, options), signal: context.signal },
    context.root,
    openOptions(context),
  )
  try {
    context.log(`${device.info().name} (${device.kind}), ${model.dtype}, ${planText(model.plan, planReason)}\n`)
    const flags = generationOf(Object.fromEntries(flagNames.map((name) => [name, options[name]])))
    const results = await model.generate(inputs, {
      ...flags,
      signal: context.signal,
      ...(batch === undefined ? {} : { batch }),
    })
    const tokenizer = await loadTokenizer(folder).catch(() => undefined)
    if (options.text !== undefined && !options.json && tokenizer !== undefined) {
      return results.map(({ ids }) => `${tokenizer.decode(ids)}\n`).join('')
    }
    return results.map((result) => generationLine(result, tokenizer)).join('')
  } finally {
    close()
  }
}
