/** `heddle run` of a LLaMA-like model: texts and ids, and how they go on. */
import { join } from 'node:path'
import { type Command, Option } from '@commander-js/extra-typings'
import { z } from 'zod'
import { usageError } from '../errors.js'
import { llamaLayers } from '../models/assembly/layer_graphs.js'
import { readConfigFile } from '../models/files/config_file.js'
import { loadTokenizer, type Tokenizer } from '../models/files/tokenizer.js'
import { readLlamaConfig } from '../models/llama/config.js'
import { isLlamaType } from '../models/llama/families.js'
import { type Llama, type LlamaResult, loadLlama } from '../models/llama/llama_pipeline.js'
import { type Rotation, rotations } from '../models/llama/weights.js'
import { choosePlan } from '../runtime/default_plan.js'
import type { Device } from '../runtime/device.js'
import { type OpenOptions, openKernels } from '../runtime/open.js'
import type { Case } from './cases.js'
import type { CliContext } from './context.js'
import { flagNames, type GenerateVerbOptions, generationOf } from './generate.js'
import { positive } from './options.js'
import { expectFolder, openOptions, type PipelineOptions, planText } from './pipeline.js'
import { tokenIds } from './token_ids.js'

/** Options that only models of this type have. */
export interface LlamaFlagOptions {
  /** Tokens of prompts that are read at once. */
  readonly chunk?: number | undefined
  readonly rotation?: Rotation | undefined
}

/** A command with these options. */
export const llamaOptions = <A extends unknown[], O extends Record<string, unknown>>(command: Command<A, O>) =>
  command
    .option('--chunk <tokens>', 'tokens of prompts that are read at once', positive)
    .addOption(
      new Option('--rotation <how>', 'inverse frequencies in float32, or rounded to the type the model is stored in').choices(
        rotations,
      ),
    )

const modelType = z.looseObject({ model_type: z.string().optional() })

/** Whether a folder holds a LLaMA-like model, by its configuration. @throws usage `config.read`, `config.json` */
export async function continuesText(folder: string): Promise<boolean> {
  const parsed = modelType.safeParse(await readConfigFile(join(folder, 'config.json')))
  return parsed.success && isLlamaType(parsed.data.model_type)
}

/** @throws usage `run.option` for an option of LLaMA-like models given to another */
export function expectNoContinuing({ chunk, rotation }: LlamaFlagOptions): void {
  const given = chunk === undefined ? (rotation === undefined ? undefined : '--rotation') : '--chunk'
  if (given !== undefined) throw usageError('run.option', `${given} is of LLaMA-like models, and this one is none`)
}

/** An open LLaMA-like model. */
export interface OpenLlama {
  readonly device: Device
  readonly model: Llama
  /** Why the model's plan was taken; undefined where it was asked for. */
  readonly planReason: string | undefined
  close(): void
}

/**
 * Opens the folder of a LLaMA-like model on a device. Close it to free the device.
 * @param root the project whose kernels run; the current folder by default
 * @param opening who is told what is compiled, and what cancels it
 * @throws usage for a model, plan or dtype that cannot be used; environment for a missing device, addon or compiler
 */
export async function openLlama(
  folder: string,
  { device, dtype, plan, scales, signal, rotation }: PipelineOptions & LlamaFlagOptions = {},
  root: string = process.cwd(),
  opening: Omit<OpenOptions, 'root'> = {},
): Promise<OpenLlama> {
  if (scales !== undefined) throw usageError('run.option', '--scales is of quantised encoders, and this model is none')
  expectFolder(folder)
  const kernels = await openKernels(device, { ...opening, root })
  try {
    const chosen =
      plan === undefined
        ? choosePlan(kernels.manifest, kernels.device.info(), dtype ?? 'f32', llamaLayers(await readLlamaConfig(folder)))
        : undefined
    const named = plan ?? chosen?.name
    const model = await loadLlama(folder, {
      ...kernels,
      ...(dtype === undefined ? {} : { dtype }),
      ...(named === undefined ? {} : { plan: named }),
      ...(rotation === undefined ? {} : { rotation }),
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

/** Opens a model, says what it runs on, and closes it behind `use`. */
export async function withLlama<T>(
  folder: string,
  options: PipelineOptions & LlamaFlagOptions,
  context: CliContext,
  use: (model: Llama) => Promise<T>,
): Promise<T> {
  const { device, model, planReason, close } = await openLlama(
    folder,
    { ...options, signal: context.signal },
    context.root,
    openOptions(context),
  )
  try {
    context.log(`${device.info().name} (${device.kind}), ${model.dtype}, ${planText(model.plan, planReason)}\n`)
    const { config, rotation } = model
    if (options.rotation === undefined && rotation === 'stored' && config.dtype !== undefined && config.dtype !== 'f32') {
      context.log(`inverse frequencies are rounded to ${config.dtype}, as the model is stored; --rotation float32 keeps them\n`)
    }
    return await use(model)
  } finally {
    close()
  }
}

/** Options of a run that a verb may leave out. */
export const runOptionsOf = (
  { batch, chunk }: { readonly batch?: number | undefined; readonly chunk?: number | undefined },
  signal: AbortSignal,
) => ({
  signal,
  ...(batch === undefined ? {} : { batch }),
  ...(chunk === undefined ? {} : { chunk }),
})

/** One result as a JSON line. */
function resultLine({ ids, finish }: LlamaResult, tokenizer: Tokenizer | undefined): string {
  const text = tokenizer === undefined ? {} : { text: tokenizer.decode(ids) }
  return `${JSON.stringify({ ids, ...text, finish })}\n`
}

/** Runs cases and returns a line for each. @throws usage `generate.*`, `run.*`; environment for what the machine lacks */
export async function continueTexts(
  folder: string,
  cases: readonly Case[],
  options: GenerateVerbOptions & LlamaFlagOptions & { readonly json?: boolean | undefined; readonly text?: string | undefined },
  context: CliContext,
): Promise<string> {
  const inputs = await tokenIds(folder, cases)
  return withLlama(folder, options, context, async (model) => {
    const flags = generationOf(Object.fromEntries(flagNames.map((name) => [name, options[name]])))
    const results = await model.generate(inputs, { ...flags, ...runOptionsOf(options, context.signal) })
    const tokenizer = await loadTokenizer(folder).catch(() => undefined)
    if (options.text !== undefined && !options.json && tokenizer !== undefined) {
      return results.map(({ ids }) => `${tokenizer.decode(ids)}\n`).join('')
    }
    return results.map((result) => resultLine(result, tokenizer)).join('')
  })
}
