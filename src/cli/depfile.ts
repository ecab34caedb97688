/**
 * `heddle gen --depfile`: the files and folders that the generated source depends on, as make and ninja read them. The target is the manifest.
 */
import { existsSync } from 'node:fs'
import { utimes } from 'node:fs/promises'
import path, { join } from 'node:path'
import { usageError } from '../errors.js'
import { writeWhole } from '../output.js'
import { type PathModule, slashed } from '../path_names.js'
import { packageRoot } from '../toolchain/index.js'
import type { CliContext } from './context.js'
import { tuningFile } from './tuning_file.js'

export interface DepfileOptions {
  readonly specs?: string | undefined
  readonly tuning?: string | undefined
  /** Folder of the generated source. */
  readonly out: string
  /** The file to write. */
  readonly file: string
}

/**
 * A path in a rule. Slashes separate on every system, since a backslash escapes.
 * @throws usage `gen.depfile` for characters that no rule can state
 */
function escaped(path: string, paths: PathModule): string {
  if (/[\n\r]/.test(path)) throw usageError('gen.depfile', `a rule cannot name ${JSON.stringify(path)}`)
  return slashed(path, paths).replaceAll('\\', '\\\\').replaceAll('$', '$$$$').replace(/[ #]/g, '\\$&')
}

/** One rule: the target depends on all sources. Each source is a target without a rule, so that make accepts its removal. */
export function depfileText(target: string, sources: readonly string[], paths: PathModule = path): string {
  const names = sources.map((source) => escaped(source, paths))
  return [
    `${escaped(target, paths)}: \\`,
    names.map((name) => `  ${name}`).join(' \\\n'),
    '',
    ...names.map((name) => `${name}:`),
    '',
  ].join('\n')
}

/** Writes the dependencies of the last read of the specs. @throws usage `gen.depfile` if the read was not cached; errors of writing */
export async function writeDepfile({ specs = 'specs', tuning, out, file }: DepfileOptions, { root }: CliContext): Promise<void> {
  const { filesRead } = await import('../frontend/searched.js')
  const read = filesRead(root, specs)
  if (read === undefined) {
    throw usageError(
      'gen.depfile',
      'the files that were read are unknown: the cache of compiler results is off, or cannot be written',
      {
        hint: 'unset HEDDLE_KEPT, and see heddle doctor for the cache',
      },
    )
  }
  const measured = tuningFile({ root, specs, file: tuning })
  // The package's manifest changes with its version.
  const others = [join(packageRoot(), 'package.json'), measured].filter((path) => existsSync(path))
  const target = join(out, 'manifest.json')
  await writeWhole(file, depfileText(target, [...new Set([...read, ...others])]))
  // Files that do not change keep their times. This one is then newer than its sources, so that make runs `gen` once.
  const now = new Date()
  await utimes(target, now, now)
}
