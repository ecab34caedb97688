/** Runs once before the tests that need nvcc: the addon, and the plugins with that of CUDA, whether or not there is a GPU. */
import { fileURLToPath } from 'node:url'
import { buildNative } from '../../src/toolchain/index.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

export async function setup(): Promise<void> {
  const { folder } = await buildNative({ root, cuda: true })
  process.env.HEDDLE_NATIVE = folder
}
