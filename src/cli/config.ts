/** `heddle config`: prints what a build needs to compile generated source itself. Runs and compiles nothing. */
import { join } from 'node:path'
import { Command, Option } from '@commander-js/extra-typings'
import { usageError } from '../errors.js'
import { gpuFlags, includeFolders, packageRoot, simtFlags, type Target, targets } from '../toolchain/index.js'
import { type CliContext, json } from './context.js'

export interface ConfigOptions {
  /** Flags for the folders of headers that generated source includes. */
  readonly includes?: boolean | undefined
  /** Flags that the meaning of generated source depends on. */
  readonly flags?: boolean | undefined
  readonly target?: Target | undefined
}

export interface ConfigResult {
  readonly includes: readonly string[]
  readonly flags: readonly string[]
}

/** Folders of headers, and flags, for a target. */
export function config({ target = 'cuda' }: Pick<ConfigOptions, 'target'> = {}): ConfigResult {
  return {
    includes: includeFolders(join(packageRoot(), 'native'), target),
    flags: target === 'simt' ? simtFlags() : gpuFlags,
  }
}

/** An argument of a shell. */
const quoted = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)

export const configCommand = (context: () => CliContext) =>
  new Command('config')
    .description('print flags to compile generated source in a build of your own')
    .option('--includes', 'the folders of its headers, as -I')
    .option('--flags', 'the flags that its results depend on')
    .addOption(new Option('--target <device>', 'device to compile for').choices(targets).default('cuda' as const))
    .option('--json', 'print both as JSON')
    .action((options) => {
      const { includes, flags } = config(options)
      if (options.json) return context().out(json({ includes, flags }))
      const words = [...(options.flags ? flags : []), ...(options.includes ? includes.map((folder) => `-I${folder}`) : [])]
      if (words.length === 0)
        throw usageError('config.nothing', 'nothing to print', { hint: 'give --includes, --flags, or both' })
      context().out(`${words.map(quoted).join(' ')}\n`)
    })
