/** Opens encoders on the CPU device, over the project's own generated kernels. Missing kernels are compiled on demand. */
import { fileURLToPath } from 'node:url'
import { type Encoder, type EncoderOptions, loadEncoder } from '../../src/models/encoder/encoder_pipeline.js'
import { type OpenOptions, openKernels } from '../../src/runtime/open.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Level of optimisation: `-O1` for models that run for longer than it takes to compile. */
type Level = Pick<OpenOptions, 'optimise'>

/** The simt device with the project's kernels. */
export const openSimtKernels = (level: Level = {}): Promise<Pick<EncoderOptions, 'device' | 'library' | 'manifest'>> =>
  openKernels('simt', { root, ...level })

/** Loads a model folder on simt; `options` override the defaults. */
export async function simtEncoders(
  level: Level = {},
): Promise<(dir: string, options?: Partial<EncoderOptions>) => Promise<Encoder>> {
  const opened = await openSimtKernels(level)
  return (dir, options = {}) => loadEncoder(dir, { ...opened, ...options })
}
