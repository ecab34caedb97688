/** `heddle run` of a LLaMA-like model: texts and ids, and how they go on. */
import { resolve } from 'node:path'
import { usageError } from '../errors.js'
import { searchesBeams } from '../models/decoding/generation_options.js'
import { type LlamaChatOptions, llamaChat } from '../models/llama/chat.js'
import { loadLlama } from '../models/llama/llama_pipeline.js'
import type { Llama, LlamaGenerateOptions } from '../models/llama/llama_types.js'
import { type LlamaText, openLlamaFiles, openLlamaText } from '../models/llama/open_files.js'
import type { LlamaResult } from '../models/llama/results.js'
import { expectOptions, type NamesOf, named } from '../models/parts/known_options.js'
import { defaultPlan } from '../program/plans.js'
import { readChannels } from '../quant/index.js'
import type { Device } from '../runtime/device.js'
import { type OpenOptions, openKernels } from '../runtime/open.js'
import type { ChatSession } from '../text/chat_session.js'
import { type Prompt, promptIds } from '../text/prompts.js'
import { shownText } from '../text/shown_text.js'
import type { Case } from './cases.js'
import type { CliContext } from './context.js'
import { beamsShown, type GenerateVerbOptions } from './generate.js'
import type { LlamaFlagOptions } from './llama_flags.js'
import { llamaPlan } from './llama_plan.js'
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
  if (given !== undefined) throw usageError('run.option', `${flagOf(given)} is of LLaMA-like models, and this one is none`)
}

const flagOf = (name: string): string => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`

/** What a LLaMA-like model is opened with; runs have options of their own. */
export type OpenLlamaOptions = PipelineOptions & Pick<LlamaFlagOptions, 'caches' | 'rotation' | 'smooth'>

const openNames: NamesOf<OpenLlamaOptions> = { ...pipelineNames, caches: true, rotation: true, smooth: true }

/** An open LLaMA-like model. */
export interface OpenLlama {
  readonly device: Device
  readonly model: Llama
  /** Its tokenizer, chat template and generation settings, read when they are first asked for. @throws what `openLlamaText` throws */
  text(): Promise<LlamaText>
  /** Begins a conversation. @throws usage `run.option`, `prompt.template`, `prompt.tokenizer`, and what `text` throws */
  chat(options?: LlamaChatOptions): Promise<ChatSession>
  /** Why the model's plan was taken; undefined where it was asked for. */
  readonly planReason: string | undefined
  close(): void
}

/**
 * Opens the folder of a LLaMA-like model on a device. Close it to free the device.
 * @param root the project whose kernels run; the current folder by default
 * @param opening who is told what is compiled, and what cancels it
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
    throw usageError('run.option', '--smooth has nothing to go by', {
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
    const text = (): Promise<LlamaText> => (read ??= openLlamaText(folder, model.config))
    return {
      device: kernels.device,
      model,
      text,
      chat: async (asked) => llamaChat(model, await text(), asked),
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

/** Opens a model, says what it runs on, and closes it behind `use`. */
export async function withLlama<T>(
  folder: string,
  options: PipelineOptions & LlamaFlagOptions,
  context: CliContext,
  use: (model: Llama) => Promise<T>,
): Promise<T> {
  const { device, model, planReason, close } = await openLlama(
    folder,
    { ...named<OpenLlamaOptions>(openNames, options), signal: context.signal },
    context.root,
    openOptions(context),
  )
  try {
    context.log(`${device.info().name} (${device.kind}), ${model.dtype}, ${planText(model.plan, planReason)}\n`)
    const { config, rotation } = model
    if (options.rotation === undefined && rotation === 'stored' && config.dtype !== undefined && config.dtype !== 'f32') {
      context.log(`inverse frequencies are rounded to ${config.dtype}, as the model is stored; --rotation float32 keeps them\n`)
    }
    if (config.quantization !== undefined && model.plan === defaultPlan)
      context.log('the int8 weights run as the floats they stand for; --plan best-llama-w8a8 multiplies them as they are\n')
    return await use(model)
  } finally {
    close()
  }
}

/** Options of a run that a verb may leave out. */
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

/** A continued text, or one that a stop string ended. */
interface Continued {
  readonly ids: readonly number[]
  readonly text: string | undefined
  readonly finish: LlamaResult['finish'] | 'stop'
  readonly stop?: string | undefined
  readonly beams?: LlamaResult['beams']
}

/** Continues prompts; what a stop string ends is not waited for. */
async function continuations(
  model: Llama,
  prompts: readonly (readonly number[])[],
  { options, stop, text }: { readonly options: LlamaGenerateOptions; readonly stop: readonly string[]; readonly text: LlamaText },
): Promise<Continued[]> {
  const { tokenizer } = text
  const cases = prompts.map((inputIds) => ({ inputIds }))
  if (tokenizer === undefined) {
    if (stop.length > 0) promptIds({ text: stop[0] ?? '' }, text)
    return (await model.generate(cases, options)).map((result) => ({ ...result, text: undefined }))
  }
  if (searchesBeams(options)) {
    const results = await model.generate(cases, options)
    return results.map(({ ids, finish, beams }) => {
      const shown = shownText(tokenizer, stop)
      const begun = shown.push(ids)
      return {
        ...{ ids: shown.ids, text: begun + shown.finish(), finish: shown.stop === undefined ? finish : ('stop' as const) },
        ...(shown.stop === undefined ? {} : { stop: shown.stop }),
        ...(beams === undefined ? {} : { beams }),
      }
    })
  }
  const shown = prompts.map(() => ({ ids: shownText(tokenizer, stop), text: '', finish: 'limit' as Continued['finish'] }))
  for await (const { index, ids, finish } of model.stream(cases, options)) {
    const each = shown[index]
    if (each === undefined) continue
    each.text += each.ids.push(ids)
    each.finish = each.ids.stop === undefined ? (finish ?? 'limit') : 'stop'
    if (shown.every(({ ids: { stop } }) => stop !== undefined)) break
  }
  return shown.map(({ ids, text, finish }) => ({
    ids: ids.ids,
    text: text + ids.finish(),
    finish,
    ...(ids.stop === undefined ? {} : { stop: ids.stop }),
  }))
}

/** Cases as prompts. Types of tokens are of other models. */
function promptOf(item: Case, variables: TalkOptions['templateVars']): Prompt {
  if ('input_ids' in item) return { ids: item.input_ids }
  if (!('messages' in item)) return { text: item.text }
  const { messages, tools, template_vars: own } = item
  return { messages, variables: { ...variables, ...own, ...(tools === undefined ? {} : { tools }) } }
}

/** Runs cases and returns a line for each. @throws usage `generate.*`, `run.*`, `prompt.*`, `chat.*`; environment for what the machine lacks */
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

const rest = ({ finish, stop, beams }: Omit<Continued, 'text'>) => ({
  ...{ finish, ...(stop === undefined ? {} : { stop }) },
  ...(beams === undefined ? {} : { beams: beamsShown(beams) }),
})
