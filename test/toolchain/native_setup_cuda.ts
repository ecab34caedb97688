/** Runs once before the tests that need nvcc: the addon, and the plugins with that of CUDA, whether or not there is a GPU. */
import { buildNative } from '../../src/toolchain/index.js'

export async function setup(): Promise<void> {
  const { folder } = await buildNative({ cuda: true })
  process.env.HEDDLE_NATIVE = folder
}
