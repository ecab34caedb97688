/** `heddle clean`: removes everything heddle built in this project, and on request what all projects share. Sources and `generated/` stay. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Command } from '@commander-js/extra-typings'
import { cacheFolder, outputs } from '../toolchain/index.js'
import type { CliContext } from './context.js'

export interface CleanOptions {
  /** Also removes the compiled objects and libraries that all of the user's projects share. */
  readonly cache?: boolean | undefined
}

export async function clean(context: CliContext, { cache = false }: CleanOptions = {}): Promise<void> {
  const { base } = outputs(context.root)
  // Of a cache that the user named, only what heddle keeps there.
  const shared = ['objects', 'headers', 'libraries', 'native', 'kept'].map((name) => join(cacheFolder(), name))
  for (const folder of [base, ...(cache ? shared : [])]) {
    await rm(folder, { recursive: true, force: true })
    context.log(`removed ${folder}\n`)
  }
}

export const cleanCommand = (context: () => CliContext) =>
  new Command('clean')
    .description('remove what heddle built in this project (.heddle)')
    .option('--cache', 'also what is compiled for all projects of this user')
    .action((options) => clean(context(), options))
