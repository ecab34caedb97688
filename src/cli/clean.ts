/**
 * `heddle clean`: removes everything heddle built in this project, and on request the cache that all projects share. Sources, `generated/` and
 * foreign files in these folders stay.
 */
import { existsSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Command } from '@commander-js/extra-typings'
import { memoFolder } from '../memo.js'
import { removeEmpty } from '../output.js'
import { cacheFolder, outputs } from '../toolchain/index.js'
import type { CliContext } from './context.js'

export interface CleanOptions {
  /** Also removes the compiled objects and libraries that all of the user's projects share. */
  readonly cache?: boolean | undefined
}

/** Names that heddle uses in `.heddle`: builds, results of the compiler, notes, locks, and folders of killed processes. */
const ofProject =
  /^(native|simt|cuda|tune|docs|docs-api|docs-made|vitepress|kept)$|^(kept\.swept|native\.building|verified_groups\.txt|gen-failed\.txt|vitest\.json|mutants\.json)$|^(bodies|specs|check)-\d+-\w+$/

const ofBundle = /^heddle-[\w-]+\.tar\.(xz|gz)$|^\.packing-/

/** Names of cache entries: digests, unfinished entries and locks. */
const ofCache = /^([0-9a-f]{16}|[0-9a-f]{64})$|^[\w-]{43}(\.\d+\.tmp)?$|^\.(making|lock)-/

/** Folders of heddle in a cache folder named by the user. */
const shared = ['objects', 'headers', 'libraries', 'native', 'addon', 'kept', 'projects']

export async function clean({ root, log }: CliContext, { cache = false }: CleanOptions = {}): Promise<void> {
  const { base } = outputs(root)
  await removeNamed(join(base, 'bundle'), ofBundle)
  // This folder belongs to this project alone.
  await rm(memoFolder(root), { recursive: true, force: true })
  const folders = [
    [base, ofProject] as const,
    ...(cache ? shared : []).map((name) => [join(cacheFolder(), name), ofCache] as const),
  ]
  for (const [folder, own] of folders) {
    const left = await removeNamed(folder, own)
    log(left.length === 0 ? `removed ${folder}\n` : `removed heddle's files in ${folder}; not removed: ${left.join(', ')}\n`)
  }
}

/** Removes entries of a folder that match `own`, and the folder if it is then empty. @returns remaining names */
async function removeNamed(folder: string, own: RegExp): Promise<readonly string[]> {
  const names = await readdir(folder).catch(() => [])
  for (const name of names) if (own.test(name)) await rm(join(folder, name), { recursive: true, force: true })
  await removeEmpty(folder)
  return names.filter((name) => !own.test(name) && existsSync(join(folder, name))).sort()
}

export const cleanCommand = (context: () => CliContext) =>
  new Command('clean')
    .description('remove what heddle built in this project (.heddle), and its cached results')
    .option('--cache', 'also remove what is compiled for all projects of this user')
    .action((options) => clean(context(), options))
