/** Runs once before the tests that need nvcc: builds the addon and the plugins including the CUDA one, with or without a GPU. */
import { buildNative } from '../../src/toolchain/index.js'

export async function setup(): Promise<void> {
  const { folder } = await buildNative({ cuda: true })
  process.env.HEDDLE_NATIVE = folder
}
