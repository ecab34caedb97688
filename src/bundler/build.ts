/** Generates and compiles the kernels of a bundle. Loaded once a bundle contains a spec. */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { build } from '../cli/build.js'
import type { CliContext } from '../cli/context.js'
import { gen } from '../cli/gen.js'
import { filesRead } from '../frontend/searched.js'
import { jsByDefault } from '../runtime/js/default.js'
import type { Target } from '../toolchain/index.js'
import type { PluginContext } from './plugin.js'

export { findRoot as projectAbove } from '../runtime/api/project.js'

/** A verb's context whose lines are messages of the bundler. */
function contextOf(root: string, context: PluginContext): CliContext {
  const say = (text: string): void => context.info(text.trim())
  return { root, signal: new AbortController().signal, verbose: false, out: say, log: say }
}

/** Modules and tuning files below a folder of specs. */
export const specFiles = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(ts|json)$/.test(name))
    .map((name) => join(folder, name))

/** Files of the project on which the generated source depends, which it brings up to date. @throws errors of `gen` */
export async function generate(root: string, specs: string, context: PluginContext): Promise<readonly string[]> {
  await gen({ specs }, contextOf(root, context))
  const read = filesRead(root, specs) ?? []
  return read.filter((path) => !/[\\/]node_modules[\\/]/.test(path) && existsSync(path) && statSync(path).isFile())
}

/** Compiles generated source for devices; by default for those of this machine. @throws errors of `build` */
export async function compile(root: string, targets: readonly Target[] | undefined, context: PluginContext): Promise<void> {
  const verb = contextOf(root, context)
  if (targets === undefined) {
    const chosen = await jsByDefault({ root, onNotice: (text) => context.warn(text) })
    if (chosen === undefined) await build({}, verb)
    return
  }
  for (const target of targets) await build({ target }, verb)
}
