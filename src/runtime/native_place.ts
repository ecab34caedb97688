/** Where the loader finds the addon that a build of the project wrote. Every verb starts with it, so that it loads nothing else. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { installation } from '../toolchain/installation.js'

/** The loader finds the addon by itself; this tells it about the folder that a build writes. */
export function useNativeOf(root: string): void {
  const { native } = installation(root)
  if (!process.env.HEDDLE_NATIVE && existsSync(join(native, 'heddle.node'))) process.env.HEDDLE_NATIVE = native
}
