/** Runs once before the tests that need a device: builds the addon and the plugins, and says where they are. */
import { fileURLToPath } from 'node:url'
import { buildNative } from '../../src/toolchain/index.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

export async function setup(): Promise<void> {
  const { folder } = await buildNative({ root })
  process.env.HEDDLE_NATIVE = folder
}
