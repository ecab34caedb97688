/** Runs once before the tests that need a device: builds the addon and the plugins, and sets their folder. */
import { buildNative } from '../../src/toolchain/index.js'

export async function setup(): Promise<void> {
  const { folder } = await buildNative()
  process.env.HEDDLE_NATIVE = folder
}
