/** The plan of a LLaMA-like model where nobody names one. */
import { llamaLayers } from '../models/assembly/layer_graphs.js'
import type { LlamaConfig } from '../models/llama/config.js'
import { openLlamaFiles } from '../models/llama/open_files.js'
import { withCaches } from '../models/llama/programs.js'
import { areAllInt8 } from '../models/llama/tensor_names.js'
import { type ChosenPlan, choosePlan } from '../runtime/default_plan.js'
import type { Device } from '../runtime/device.js'
import type { openKernels } from '../runtime/open.js'
import type { LlamaFlagOptions } from './llama_flags.js'
import type { PipelineOptions } from './pipeline.js'

type Kernels = Pick<Awaited<ReturnType<typeof openKernels>>, 'manifest'> & { readonly device: Pick<Device, 'info'> }

/**
 * It fits the device, the storage type, and what the folder's weights are: a folder of int8 weights whose activations are to be quantised is
 * multiplied so, unless it keeps some of the weights in floats. @throws usage for a folder that cannot be read
 */
export async function llamaPlan(
  folder: string,
  { manifest, device }: Kernels,
  { dtype = 'f32', caches = 'float', signal }: Pick<PipelineOptions & LlamaFlagOptions, 'dtype' | 'caches' | 'signal'>,
): Promise<ChosenPlan> {
  const { config } = await openLlamaFiles(folder, signal)
  const products = config.quantization?.scheme === 'w8a8' && areAllInt8(config) ? 'int8' : 'float'
  return choosePlan(manifest, device.info(), dtype, llamaLayers(withCaches(config, caches)), products)
}

/** A line about int8 weights under a plan that has none. */
export function floatsText(config: LlamaConfig): string {
  const plan = config.quantization?.scheme === 'w8a8' ? 'best-llama-w8a8' : 'best-llama-int8w'
  const others = areAllInt8(config) ? '' : ', and rounds those that the model has in floats'
  return `the int8 weights run as the floats they stand for; --plan ${plan} multiplies them as they are${others}`
}
