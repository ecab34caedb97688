/** `heddle run` for a model that generates text: its options, and results as lines. */
import { join } from 'node:path'
import { z } from 'zod'
import { readConfigFile } from '../checkpoint/config_file.js'
import { usageError } from '../errors.js'
import { seq2seqLayers } from '../models/assembly/layer_graphs.js'
import type { Hypothesis } from '../models/decoding/beam_trace.js'
import type { GenerationOptions } from '../models/decoding/generation_options.js'
import { type GenerationSettings, readGenerationSettings } from '../models/decoding/generation_settings.js'
import { expectOptions, named } from '../models/parts/known_options.js'
import { modelTypes } from '../models/parts/model_types.js'
import { readSeq2seqConfig } from '../models/seq2seq/seq2seq_config.js'
import { type GenerateOptions, type GenerationResult, loadSeq2seq, type Seq2seq } from '../models/seq2seq/seq2seq_pipeline.js'
import { type GeneratorTextOptions, seq2seqTexts } from '../models/seq2seq/text.js'
import type { WriteText } from '../models/writing/options.js'
import { choosePlan } from '../runtime/default_plan.js'
import type { Device } from '../runtime/device.js'
import { type OpenOptions, openKernels } from '../runtime/open.js'
import { loadTokenizer, type Tokenizer } from '../text/tokenizer.js'
import type { Case } from './cases.js'
import type { CliContext } from './context.js'
import { continuesText } from './continues_text.js'
import type { GenerationFlags } from './generation_flags.js'
import { settingsOf } from './own_settings.js'
import { expectFolder, openOptions, type PipelineOptions, pipelineNames, planText } from './pipeline.js'
import { tokenIds } from './token_ids.js'

export interface GenerateVerbOptions extends PipelineOptions, GenerationFlags {
  /** Machine of the device: a name of ~/.ssh/config, or a command prefix. */
  readonly on?: string | undefined
  /** Cases run together. */
  readonly batch?: number | undefined
  /** False leaves the model's own settings out. */
  readonly settings?: boolean | undefined
}

const modelType = z.looseObject({ model_type: z.string().optional() })

/** True if a folder holds a model that generates text, by its configuration. @throws usage `config.read`, `config.json` */
export async function generatesText(folder: string): Promise<boolean> {
  const parsed = modelType.safeParse(await readConfigFile(join(folder, 'config.json')))
  return parsed.success && modelTypes.seq2seq.some((type) => type === parsed.data.model_type)
}

/** Hypotheses as they appear in a JSON line. */
export const beamsShown = (beams: readonly Hypothesis[]) =>
  beams.map(({ ids, logprobs, cumLogProb }) => ({
    ids,
    ...logprobsShown(logprobs),
    cumLogProb: Number(cumLogProb.toPrecision(7)),
  }))

/** Log-probabilities as they appear in a JSON line. */
export const logprobsShown = (logprobs: readonly number[] | undefined) =>
  logprobs === undefined ? {} : { logprobs: logprobs.map((each) => Number(each.toPrecision(7))) }

/** One result as a JSON line: ids without start and end ids. */
export function generationLine({ ids, logprobs, beams }: GenerationResult, tokenizer: Tokenizer | undefined): string {
  const text = tokenizer === undefined ? {} : { text: tokenizer.decode(ids) }
  const hypotheses = beams === undefined ? {} : { beams: beamsShown(beams) }
  return `${JSON.stringify({ ids, ...text, ...logprobsShown(logprobs), ...hypotheses })}\n`
}

/** @throws usage `config.model_type` for a LLaMA-like model, which has its own opener; `config.read`, `config.json` */
async function expectGenerating(folder: string): Promise<void> {
  if (!(await continuesText(folder))) return
  throw usageError('config.model_type', `${folder} is a LLaMA-like model: openGenerator expects Pegasus or Marian`, {
    hint: "open it with openLlama of 'heddle/commands'",
  })
}

/** An open model that generates text. */
export interface Generator {
  readonly device: Device
  readonly model: Seq2seq
  /**
   * Generation settings of the model's authors. `text` and `model.generate(cases, settings.options)` use them. Without options, texts of
   * `model` begin and end with the forced tokens of its settings and have their length; tokens are chosen by options alone.
   */
  readonly settings: GenerationSettings
  /**
   * Generates text from one source or several, such as a translation or a summary. With `stream: true` the text of one source is streamed.
   * @throws usage `tokenizer.*`, `prompt.text`, `generate.*`, `run.*`, and errors of the model
   */
  readonly text: WriteText<GeneratorTextOptions>
  /** Reason for the model's plan; undefined if it was given. */
  readonly planReason: string | undefined
  close(): void
}

/**
 * Opens the folder of a model that generates text on a device. Close it to free the device.
 * @param root the project whose kernels run; the current folder by default
 * @param opening callbacks for compilation progress, and the signal that cancels it
 * @throws usage for an unknown option, and for a model, plan or dtype that cannot be used; environment for a missing device, addon or compiler
 */
export async function openGenerator(
  folder: string,
  options: PipelineOptions = {},
  root: string = process.cwd(),
  opening: Omit<OpenOptions, 'root'> = {},
): Promise<Generator> {
  const generator = await openPlain(folder, options, root, opening)
  return { ...generator, model: limited(generator.model, generator.settings) }
}

/** Opens a model without its settings: texts begin, end and are limited by options alone. */
async function openPlain(
  folder: string,
  options: PipelineOptions,
  root: string,
  opening: Omit<OpenOptions, 'root'>,
): Promise<Generator> {
  expectOptions('openGenerator', pipelineNames, options)
  const { device, dtype, plan, scales, signal } = options
  if (scales !== undefined) throw usageError('run.option', '--scales applies to quantised encoders, and this model is not one')
  expectFolder(folder)
  await expectGenerating(folder)
  const config = await readSeq2seqConfig(folder)
  const settings = await readGenerationSettings(folder, config)
  const kernels = await openKernels(device, { ...opening, root, model: folder })
  try {
    const chosen =
      plan === undefined ? choosePlan(kernels.manifest, kernels.device.info(), dtype ?? 'f32', seq2seqLayers(config)) : undefined
    const named = plan ?? chosen?.name
    const model = await loadSeq2seq(folder, {
      ...kernels,
      ...(dtype === undefined ? {} : { dtype }),
      ...(named === undefined ? {} : { plan: named }),
      signal,
    })
    let read: Promise<Tokenizer> | undefined
    return {
      device: kernels.device,
      model,
      settings,
      text: seq2seqTexts(model, settings, () => (read ??= loadTokenizer(folder))),
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

/** Applies the forced tokens and the length of a model's settings where options omit them. */
function limited(model: Seq2seq, { options }: GenerationSettings): Seq2seq {
  const begin = named<Pick<GenerationOptions, 'forcedBosTokenId'>>({ forcedBosTokenId: true }, options)
  const end = named<Pick<GenerationOptions, 'forcedEosTokenId' | 'maxNewTokens'>>(
    { forcedEosTokenId: true, maxNewTokens: true },
    options,
  )
  // A caller's limit truncates a text without a forced end token.
  const joined = (given: GenerateOptions = {}): GenerateOptions => ({
    ...begin,
    ...(given.maxNewTokens === undefined && end),
    ...given,
  })
  return {
    ...model,
    generate: (cases, given) => model.generate(cases, joined(given)),
    stream: (cases, given) => model.stream(cases, joined(given)),
  }
}

/** Runs cases and returns one line per case. @throws usage `generate.*`, `run.*`; environment for missing tools or devices */
export async function generateTexts(
  folder: string,
  cases: readonly Case[],
  options: GenerateVerbOptions & { readonly json?: boolean | undefined; readonly text?: string | undefined },
  context: CliContext,
): Promise<string> {
  const { batch } = options
  const inputs = await tokenIds(folder, cases)
  const { device, model, settings, planReason, close } = await openPlain(
    folder,
    { ...named<PipelineOptions>(pipelineNames, options), signal: context.signal },
    context.root,
    openOptions(context, { on: options.on, who: 'run' }),
  )
  try {
    context.log(`${device.info().name} (${device.kind}), ${model.dtype}, ${planText(model.plan, planReason)}\n`)
    const { options: asked } = settingsOf(options, { settings, vocab: model.config.vocab }, context.log)
    const results = await model.generate(inputs, {
      ...asked,
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
