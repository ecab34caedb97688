/** Opens encoders on the CPU device, over the project's own generated kernels. Builds what is not built. */
import { fileURLToPath } from 'node:url'
import { readManifest, useNativeOf } from '../../src/cli/pipeline.js'
import { type Encoder, type EncoderOptions, loadEncoder } from '../../src/models/encoder/encoder_pipeline.js'
import { openDevice } from '../../src/runtime/device.js'
import { loadKernels } from '../../src/runtime/library.js'
import { buildKernels } from '../../src/toolchain/index.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The simt device with the project's kernels. */
export async function openSimtKernels(): Promise<Pick<EncoderOptions, 'device' | 'library' | 'manifest'>> {
  useNativeOf(root)
  const { library: path } = await buildKernels({ target: 'simt', root, jobs: 2 })
  const manifest = await readManifest(root)
  const device = openDevice('simt')
  return { device, library: loadKernels(device, path, manifest), manifest }
}

/** Loads a model folder on simt; what `options` names overrides the defaults. */
export async function simtEncoders(): Promise<(dir: string, options?: Partial<EncoderOptions>) => Promise<Encoder>> {
  const opened = await openSimtKernels()
  return (dir, options = {}) => loadEncoder(dir, { ...opened, ...options })
}
