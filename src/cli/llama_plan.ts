/** The plan of a LLaMA-like model where nobody names one. */
import { llamaLayers } from '../models/assembly/layer_graphs.js'
import { openLlamaFiles } from '../models/llama/open_files.js'
import { withCaches } from '../models/llama/programs.js'
import { type ChosenPlan, choosePlan } from '../runtime/default_plan.js'
import type { Device } from '../runtime/device.js'
import type { openKernels } from '../runtime/open.js'
import type { LlamaFlagOptions } from './llama_flags.js'
import type { PipelineOptions } from './pipeline.js'

type Kernels = Pick<Awaited<ReturnType<typeof openKernels>>, 'manifest'> & { readonly device: Pick<Device, 'info'> }

/**
 * It fits the device, the storage type, and what the folder's weights are: a folder of int8 weights whose activations are to be quantised is
 * multiplied so. @throws usage for a folder that cannot be read
 */
export async function llamaPlan(
  folder: string,
  { manifest, device }: Kernels,
  { dtype = 'f32', caches = 'float', signal }: Pick<PipelineOptions & LlamaFlagOptions, 'dtype' | 'caches' | 'signal'>,
): Promise<ChosenPlan> {
  const { config } = await openLlamaFiles(folder, signal)
  const products = config.quantization === 'w8a8' ? 'int8' : 'float'
  return choosePlan(manifest, device.info(), dtype, llamaLayers(withCaches(config, caches)), products)
}
