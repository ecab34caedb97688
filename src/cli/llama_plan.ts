/** Default plan of a LLaMA-like model. */
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
 * Chooses a plan by the device, the storage type and the folder's weights. A w8a8 folder gets int8 matmuls, unless some of its weights are
 * floats. @throws usage for a folder that cannot be read
 */
export async function llamaPlan(
  folder: string,
  { manifest, device }: Kernels,
  { dtype = 'f32', caches = 'float', signal }: Pick<PipelineOptions & LlamaFlagOptions, 'dtype' | 'caches' | 'signal'>,
): Promise<ChosenPlan> {
  const { config } = await openLlamaFiles(folder, signal)
  const products = config.quantization?.scheme === 'w8a8' && areAllInt8(config) ? 'int8' : 'float'
  return choosePlan(manifest, device.info(), dtype, llamaLayers(withCaches(config, caches, dtype)), products)
}

/** Note about int8 weights under a plan without int8 matmuls. */
export function floatsText(config: LlamaConfig): string {
  const plan = config.quantization?.scheme === 'w8a8' ? 'best-llama-w8a8' : 'best-llama-int8w'
  const others = areAllInt8(config) ? '' : ', and rounds those stored as floats'
  return `the int8 weights run dequantised to floats; --plan ${plan} multiplies them as int8${others}`
}
