/** Opens encoders on the CPU device, over the project's own generated kernels. Missing kernels are compiled on demand. */
import { fileURLToPath } from 'node:url'
import { type Encoder, type EncoderOptions, loadEncoder } from '../../src/models/encoder/encoder_pipeline.js'
import { openKernels } from '../../src/runtime/open.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The simt device with the project's kernels. */
export const openSimtKernels = (): Promise<Pick<EncoderOptions, 'device' | 'library' | 'manifest'>> =>
  openKernels('simt', { root })

/** Loads a model folder on simt; `options` override the defaults. */
export async function simtEncoders(): Promise<(dir: string, options?: Partial<EncoderOptions>) => Promise<Encoder>> {
  const opened = await openSimtKernels()
  return (dir, options = {}) => loadEncoder(dir, { ...opened, ...options })
}
