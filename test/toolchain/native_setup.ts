/**
 * Runs once before the tests that need a device: builds the addon and the plugins, and sets their folder. Kernels, most of which run on small cases, are
 * compiled at one level, so that tests find those of others in the cache; models that run for longer than that saves ask for `-O1`, and so does what
 * `.ci/tarball` and the bundle run.
 */
import { buildNative } from '../../src/toolchain/index.js'

export async function setup(): Promise<void> {
  const { folder } = await buildNative()
  process.env.HEDDLE_NATIVE = folder
  process.env.HEDDLE_SIMT_OPTIMISE = '-Og'
}
