/** Opens what a model needs to run: device, kernel library, manifest, and the model itself. Shared by `run` and `demo`. */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { type Manifest, parseManifest } from '../emit/manifest.js'
import { usageError } from '../errors.js'
import { type Encoder, loadEncoder } from '../models/encoder/encoder_pipeline.js'
import { type FloatType, floatTypes } from '../models/files/convert.js'
import { readScales } from '../quant/index.js'
import { type Device, type DeviceKind, detectDevices, openDevice } from '../runtime/device.js'
import { loadKernels } from '../runtime/library.js'
import type { NativeLibrary } from '../runtime/native.js'
import { installation } from '../toolchain/index.js'

export { type DeviceKind, deviceKinds } from '../runtime/device.js'
export const dtypes = floatTypes

export interface PipelineOptions {
  /** cuda where a GPU works, else simt. */
  readonly device?: DeviceKind | undefined
  readonly dtype?: FloatType | undefined
  readonly plan?: string | undefined
  /** A scales file, for quantised plans. */
  readonly scales?: string | undefined
  /** Ends opening a model: its files may take a while to read. */
  readonly signal?: AbortSignal | undefined
}

export interface Pipeline {
  readonly device: Device
  readonly encoder: Encoder
  close(): void
}

/** The loader finds the addon by itself; this tells it about the folder that `heddle build` writes. */
export function useNativeOf(root: string): void {
  const { native } = installation(root)
  if (!process.env.HEDDLE_NATIVE && existsSync(join(native, 'heddle.node'))) process.env.HEDDLE_NATIVE = native
}

/** The device to use when the caller names none. */
export function defaultDevice(): DeviceKind {
  return detectDevices().some(({ kind, available }) => kind === 'cuda' && available) ? 'cuda' : 'simt'
}

/** The manifest of a project. @throws usage `manifest.missing`, `manifest.invalid` */
export async function readManifest(root: string): Promise<Manifest> {
  const path = join(installation(root).generated, 'manifest.json')
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw usageError('manifest.missing', `cannot read ${path}`, { hint: 'run heddle gen', cause })
  })
  return parseManifest(text, path)
}

/** A device with its kernel library, and the manifest of the text that was built from. */
export interface OpenKernels {
  readonly device: Device
  readonly library: NativeLibrary
  readonly manifest: Manifest
}

/** @throws environment for a missing device, addon or kernel library; usage `manifest.*` */
export async function openKernels(kind: DeviceKind, root: string): Promise<OpenKernels> {
  const manifest = await readManifest(root)
  const device = openDevice(kind)
  try {
    return { device, library: loadKernels(device, installation(root).library(kind), manifest), manifest }
  } catch (error) {
    device.close()
    throw error
  }
}

/** @throws usage `run.model` where there is no folder */
export function expectFolder(model: string): void {
  if (existsSync(model)) return
  throw usageError('run.model', `there is no model folder ${model}`, {
    hint: 'a model folder holds config.json, model.safetensors and tokenizer.json',
  })
}

/**
 * Opens the folder of an encoder on a device. Close the pipeline to free the device.
 * @param root the project whose kernel libraries run; the current folder by default
 * @throws usage for a model, plan or dtype that cannot be used; environment for a missing device, addon or kernel library
 */
export async function openPipeline(
  model: string,
  options: PipelineOptions = {},
  root: string = process.cwd(),
): Promise<Pipeline> {
  expectFolder(model)
  useNativeOf(root)
  const kernels = await openKernels(options.device ?? defaultDevice(), root)
  const { device } = kernels
  try {
    const { dtype, plan, signal } = options
    const scales = options.scales === undefined ? undefined : await readScales(resolve(root, options.scales))
    const encoder = await loadEncoder(model, {
      ...kernels,
      ...(dtype === undefined ? {} : { dtype }),
      ...(plan === undefined ? {} : { plan }),
      ...(scales === undefined ? {} : { scales }),
      signal,
    })
    return {
      device,
      encoder,
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
