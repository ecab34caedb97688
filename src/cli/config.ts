/** `heddle config`: prints what a build needs to compile generated source itself, or to find heddle. Runs and compiles nothing. */
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
  /** Folder of the CMake package. */
  readonly cmake?: boolean | undefined
  readonly target?: Target | undefined
}

export interface ConfigResult {
  readonly includes: readonly string[]
  readonly flags: readonly string[]
  /** Folder with `heddle-config.cmake`. */
  readonly cmake: string
}

/** Folders of headers, and flags, for a target. */
export function config({ target = 'cuda' }: Pick<ConfigOptions, 'target'> = {}): ConfigResult {
  return {
    includes: includeFolders(join(packageRoot(), 'native'), target),
    flags: target === 'simt' ? simtFlags() : gpuFlags,
    cmake: join(packageRoot(), 'cmake'),
  }
}

/** An argument of a shell. */
const quoted = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)

export const configCommand = (context: () => CliContext) =>
  new Command('config')
    .description('print flags to compile generated source in a build of your own, or the folder of the CMake package')
    .option('--includes', 'the folders of its headers, as -I')
    .option('--flags', 'the flags that its results depend on')
    .option('--cmake', 'the folder for heddle_DIR, from which find_package(heddle) reads')
    .addOption(new Option('--target <device>', 'device to compile for').choices(targets).default('cuda' as const))
    .option('--json', 'print all as JSON')
    .action((options) => {
      const { includes, flags, cmake } = config(options)
      if (options.json) return context().out(json({ includes, flags, cmake }))
      const words = [
        ...(options.flags ? flags : []),
        ...(options.includes ? includes.map((folder) => `-I${folder}`) : []),
        ...(options.cmake ? [cmake] : []),
      ]
      if (words.length === 0)
        throw usageError('config.nothing', 'nothing to print', { hint: 'give --includes, --flags or --cmake' })
      context().out(`${words.map(quoted).join(' ')}\n`)
    })
