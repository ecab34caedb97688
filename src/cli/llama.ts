/** `heddle run` for a LLaMA-like model: continues texts and token ids. */
import { resolve } from 'node:path'
import { usageError } from '../errors.js'
import {
  type AnswerMessages,
  type LlamaSessionOptions,
  type LlamaTextOptions,
  llamaAnswers,
  llamaSession,
  llamaTexts,
} from '../models/llama/chat.js'
import { loadLlama } from '../models/llama/llama_pipeline.js'
import type { Llama, LlamaGenerateOptions } from '../models/llama/llama_types.js'
import { type LlamaText, openLlamaFiles, openLlamaText } from '../models/llama/open_files.js'
import { expectOptions, type NamesOf, named } from '../models/parts/known_options.js'
import type { WriteText } from '../models/writing/options.js'
import { type Written, writtenTexts } from '../models/writing/written.js'
import { defaultPlan } from '../program/plans.js'
import { readChannels } from '../quant/index.js'
import type { Device } from '../runtime/device.js'
import { type OpenOptions, openKernels } from '../runtime/open.js'
import type { ChatSession } from '../text/chat_session.js'
import { type Prompt, promptIds } from '../text/prompts.js'
import type { Case } from './cases.js'
import type { CliContext } from './context.js'
import { beamsShown, type GenerateVerbOptions, logprobsShown } from './generate.js'
import type { LlamaFlagOptions } from './llama_flags.js'
import { floatsText, llamaPlan } from './llama_plan.js'
import { settingsOf } from './own_settings.js'
import { expectFolder, openOptions, type PipelineOptions, pipelineNames, planText } from './pipeline.js'
import type { TalkOptions } from './talk_options.js'

/** @throws usage `run.option` for an option of LLaMA-like models given to another */
export function expectNoContinuing(options: LlamaFlagOptions & TalkOptions): void {
  const names = [
    'chunk',
    'caches',
    'rotation',
    'invariant',
    'smooth',
    'stop',
    'withPrompt',
    'chat',
    'system',
    'capacity',
    'templateVars',
  ] as const
  const given = options.settings === false ? 'noSettings' : names.find((name) => options[name] !== undefined)
  if (given !== undefined)
    throw usageError('run.option', `${flagOf(given)} applies to LLaMA-like models, and this model is not one`)
}

const flagOf = (name: string): string => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`

/** Options for opening a LLaMA-like model; runs have their own. */
export type OpenLlamaOptions = PipelineOptions & Pick<LlamaFlagOptions, 'caches' | 'rotation' | 'smooth'>

const openNames: NamesOf<OpenLlamaOptions> = { ...pipelineNames, caches: true, rotation: true, smooth: true }

/** An open LLaMA-like model. */
export interface OpenLlama {
  readonly device: Device
  /**
   * `generate` and `stream` take token ids and use only the given options, without the model's own settings. `text`, `chat` and `session`
   * use the settings; for token ids, pass `(await reader()).settings.options`.
   */
  readonly model: Llama
  /**
   * Continues a text, or several at once. With `stream: true` the continuation of one prompt is streamed.
   * @throws usage `prompt.*`, `generate.*`, `run.*`, and errors of `reader` and the model
   */
  readonly text: WriteText<LlamaTextOptions>
  /**
   * Answers a conversation by the model's chat template, whole or streamed. A continued conversation processes only its new messages.
   * @throws usage `chat.*`, `prompt.*`, `generate.*`, `run.*`, and errors of `reader` and the model
   */
  readonly chat: AnswerMessages
  /** Begins a conversation that keeps its messages. @throws usage `run.option`, `prompt.template`, `prompt.tokenizer`, errors of `reader` */
  session(options?: LlamaSessionOptions): Promise<ChatSession>
  /** Tokenizer, chat template and generation settings, read on first use. @throws errors of `openLlamaText` */
  reader(): Promise<LlamaText>
  /** Reason for the model's plan; undefined if it was given. */
  readonly planReason: string | undefined
  close(): void
}

/**
 * Opens the folder of a LLaMA-like model on a device. Close it to free the device.
 * @param root the project whose kernels run; the current folder by default
 * @param opening callbacks for compilation progress, and the signal that cancels it
 * @throws usage for an unknown option, and for a model, plan or dtype that cannot be used; environment for a missing device, addon or compiler
 */
export async function openLlama(
  folder: string,
  options: OpenLlamaOptions = {},
  root: string = process.cwd(),
  opening: Omit<OpenOptions, 'root'> = {},
): Promise<OpenLlama> {
  expectOptions('openLlama', openNames, options)
  const { device, dtype, plan, scales, signal, caches, rotation, smooth } = options
  if (scales === undefined && smooth !== undefined) {
    throw usageError('run.option', '--smooth has no channel maxima', {
      hint: 'name a channels file with --scales; `heddle calibrate` writes one',
    })
  }
  expectFolder(folder)
  const channels = scales === undefined ? undefined : await readChannels(resolve(root, scales))
  const kernels = await openKernels(device, { ...opening, root, model: folder })
  try {
    const chosen = plan === undefined ? await llamaPlan(folder, kernels, { dtype, caches, signal }) : undefined
    const named = plan ?? chosen?.name
    const model = await loadLlama(folder, {
      ...kernels,
      ...(dtype === undefined ? {} : { dtype }),
      ...(named === undefined ? {} : { plan: named }),
      ...(caches === undefined ? {} : { caches }),
      ...(rotation === undefined ? {} : { rotation }),
      ...(channels === undefined ? {} : { smooth: { channels, alpha: smooth } }),
      signal,
    })
    let read: Promise<LlamaText> | undefined
    const reader = (): Promise<LlamaText> => (read ??= openLlamaText(folder, model.config))
    return {
      device: kernels.device,
      model,
      text: llamaTexts(model, reader),
      chat: llamaAnswers(model, reader),
      session: async (asked) => llamaSession(model, await reader(), asked),
      reader,
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

/** Opens a model, logs its device, and closes it after `use`. */
export async function withLlama<T>(
  folder: string,
  options: PipelineOptions & LlamaFlagOptions & { readonly on?: string | undefined },
  context: CliContext,
  use: (model: Llama) => Promise<T>,
): Promise<T> {
  const { device, model, planReason, close } = await openLlama(
    folder,
    { ...named<OpenLlamaOptions>(openNames, options), signal: context.signal },
    context.root,
    openOptions(context, { on: options.on, who: 'run' }),
  )
  try {
    context.log(`${device.info().name} (${device.kind}), ${model.dtype}, ${planText(model.plan, planReason)}\n`)
    const { config, rotation } = model
    if (options.rotation === undefined && rotation === 'stored' && config.dtype !== undefined && config.dtype !== 'f32') {
      context.log(
        `inverse frequencies are rounded to ${config.dtype}, the storage type of the model; --rotation float32 does not round them\n`,
      )
    }
    if (config.quantization !== undefined && model.plan === defaultPlan) context.log(`${floatsText(config)}\n`)
    return await use(model)
  } finally {
    close()
  }
}

/** Options of a run that a verb may omit. */
export const runOptionsOf = (
  {
    batch,
    chunk,
    invariant,
    capacity,
  }: { readonly batch?: number | undefined } & LlamaFlagOptions & Pick<TalkOptions, 'capacity'>,
  signal: AbortSignal,
) => ({
  signal,
  ...(invariant === undefined ? {} : { invariant }),
  ...(capacity === undefined ? {} : { capacity }),
  ...(batch === undefined ? {} : { batch }),
  ...(chunk === undefined ? {} : { chunk }),
})

/** Continues prompts. A model without a tokenizer returns ids only. */
async function continuations(
  model: Llama,
  prompts: readonly (readonly number[])[],
  { options, stop, text }: { readonly options: LlamaGenerateOptions; readonly stop: readonly string[]; readonly text: LlamaText },
): Promise<(Omit<Written, 'text'> & { readonly text?: string })[]> {
  const { tokenizer } = text
  if (tokenizer !== undefined) return writtenTexts({ model, tokenizer, options, stop }, prompts)
  if (stop.length > 0) promptIds({ text: stop[0] ?? '' }, text)
  return model.generate(
    prompts.map((inputIds) => ({ inputIds })),
    options,
  ) as Promise<Omit<Written, 'text'>[]>
}

/** Converts a case to a prompt. Token types are ignored: these models have none. */
function promptOf(item: Case, variables: TalkOptions['templateVars']): Prompt {
  if ('input_ids' in item) return { ids: item.input_ids }
  if (!('messages' in item)) return { text: item.text }
  const { messages, tools, template_vars: own } = item
  return { messages, variables: { ...variables, ...own, ...(tools === undefined ? {} : { tools }) } }
}

/** Runs cases and returns one line per case. @throws usage `generate.*`, `run.*`, `prompt.*`, `chat.*`; environment for missing devices */
export async function continueTexts(
  path: string,
  cases: readonly Case[],
  options: GenerateVerbOptions &
    LlamaFlagOptions &
    TalkOptions & { readonly json?: boolean | undefined; readonly text?: string | undefined },
  context: CliContext,
): Promise<string> {
  const text = await openLlamaText(path, (await openLlamaFiles(path, context.signal)).config)
  const prompts = cases.map((item) => promptIds(promptOf(item, options.templateVars), text))
  const { options: asked, stop } = settingsOf(options, text, context.log)
  return withLlama(path, options, context, async (model) => {
    const results = await continuations(model, prompts, {
      options: { ...asked, ...runOptionsOf(options, context.signal) },
      stop,
      text,
    })
    const whole = (i: number, continued: string): string =>
      options.withPrompt ? (text.tokenizer?.decode(prompts[i] ?? [], { cleanUp: false }) ?? '') + continued : continued
    return results
      .map(({ text: continued, ...result }, i) => {
        if (options.text !== undefined && !options.json && continued !== undefined) return `${whole(i, continued)}\n`
        const texts = continued === undefined ? {} : { text: whole(i, continued) }
        return `${JSON.stringify({ ids: options.withPrompt ? [...(prompts[i] ?? []), ...result.ids] : result.ids, ...texts, ...rest(result) })}\n`
      })
      .join('')
  })
}

const rest = ({ finish, stop, logprobs, beams }: Omit<Written, 'text'>) => ({
  ...{ finish, ...(stop === undefined ? {} : { stop }) },
  ...logprobsShown(logprobs),
  ...(beams === undefined ? {} : { beams: beamsShown(beams) }),
})
