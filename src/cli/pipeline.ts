/** Opens a model with its device, kernel library and manifest. Shared by `run` and `demo`. */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { FloatType } from '../checkpoint/convert.js'
import type { Manifest } from '../emit/manifest/manifest.js'
import { usageError } from '../errors.js'
import { bertLayers } from '../models/assembly/layer_graphs.js'
import { readBertConfig } from '../models/encoder/config.js'
import { type EmbedTexts, textEmbedder } from '../models/encoder/embed_texts.js'
import { type Encoder, type EncoderOptions, loadEncoder } from '../models/encoder/encoder_pipeline.js'
import { readSentenceSettings, type SentenceSettings } from '../models/encoder/sentence_settings.js'
import { expectOptions, type NamesOf } from '../models/parts/known_options.js'
import { readScales } from '../quant/index.js'
import { type ChosenPlan, choosePlan } from '../runtime/default_plan.js'
import type { Device, DeviceName } from '../runtime/device.js'
import { type OpenKernels, type OpenOptions, openKernels } from '../runtime/open.js'
import { loadTokenizer, type Tokenizer } from '../text/tokenizer.js'
import { searchManifests } from '../toolchain/index.js'

export { compiledDeviceOption, type DeviceName, deviceOption, dtypes, onOption, openOptions, readOption } from './opening.js'

export interface PipelineOptions {
  /** cuda if a GPU works, else simt. */
  readonly device?: DeviceName | undefined
  readonly dtype?: FloatType | undefined
  readonly plan?: string | undefined
  /** A scales file, for quantised plans. */
  readonly scales?: string | undefined
  /** Cancels the opening of a model, whose files may take a while to read. */
  readonly signal?: AbortSignal | undefined
}

/** Options of an encoder alone. */
export interface EncoderPipelineOptions extends PipelineOptions {
  /** FasterTransformer's arithmetic of masks; `ft-v2.1` is the default plan then. */
  readonly masking?: EncoderOptions['masking']
}

/** Names of the options that every model has. */
export const pipelineNames: NamesOf<PipelineOptions> = { device: true, dtype: true, plan: true, scales: true, signal: true }

export interface Pipeline {
  readonly device: Device
  readonly encoder: Encoder
  /**
   * Embeds a text, or each of several: the mean of its tokens, its first or its last token, pooled on the device.
   * @throws usage `embed.*`, `run.*`, `tokenizer.*`, `config.*`, and errors of the encoder
   */
  readonly embed: EmbedTexts
  /** Reason for the encoder's plan; undefined if it was given. */
  readonly planReason: string | undefined
  close(): void
}

/** Manifest of a project's search path. @throws usage `manifest.missing`, `manifest.invalid` */
export async function readManifest(root: string): Promise<Manifest> {
  return (await searchManifests(root)).manifest
}

/** Default plan of a BERT. @throws errors of `readBertConfig` */
export const encoderPlan = async (
  model: string,
  { manifest, device }: OpenKernels,
  dtype: FloatType = 'f32',
): Promise<ChosenPlan> => choosePlan(manifest, device.info(), dtype, bertLayers(await readBertConfig(join(model, 'config.json'))))

/** `plan best-encoder (fewest launches ...)`: a plan that was chosen by default has a reason. */
export const planText = (name: string, reason: string | undefined): string =>
  reason === undefined ? `plan ${name}` : `plan ${name} (${reason}; --plan takes another)`

/** @throws usage `run.model` if the folder does not exist */
export function expectFolder(model: unknown): void {
  if (typeof model === 'string' && existsSync(model)) return
  throw usageError('run.model', `there is no model folder ${String(model)}`, {
    hint: 'a model folder holds config.json, model.safetensors and tokenizer.json',
  })
}

/**
 * Opens the folder of an encoder on a device. Close the pipeline to free the device.
 * @param root the project whose kernels run; the current folder by default
 * @param opening callbacks for compilation progress, and the signal that cancels it
 * @throws usage for an unknown option, and for a model, plan or dtype that cannot be used; environment for a missing device, addon or compiler
 */
export async function openPipeline(
  model: string,
  options: EncoderPipelineOptions = {},
  root: string = process.cwd(),
  opening: Omit<OpenOptions, 'root'> = {},
): Promise<Pipeline> {
  expectOptions('openPipeline', { ...pipelineNames, masking: true }, options)
  expectFolder(model)
  const kernels = await openKernels(options.device, { ...opening, root, model })
  const { device } = kernels
  try {
    const { dtype, signal, masking } = options
    const chosen = options.plan === undefined && masking === undefined ? await encoderPlan(model, kernels, dtype) : undefined
    const plan = options.plan ?? chosen?.name ?? 'ft-v2.1'
    const scales = options.scales === undefined ? undefined : await readScales(resolve(root, options.scales))
    const encoder = await loadEncoder(model, {
      ...kernels,
      ...(dtype === undefined ? {} : { dtype }),
      plan,
      masking,
      ...(scales === undefined ? {} : { scales }),
      signal,
    })
    let [tokenizer, settings]: [Promise<Tokenizer>?, Promise<SentenceSettings>?] = []
    return {
      device,
      encoder,
      embed: textEmbedder(encoder, {
        tokenizer: () => (tokenizer ??= loadTokenizer(model)),
        settings: () => (settings ??= readSentenceSettings(model, encoder.config.hidden)),
      }),
      planReason: chosen?.reason,
      close() {
        encoder.release()
        device.close()
      },
    }
  } catch (error) {
    device.close()
    throw error
  }
}
