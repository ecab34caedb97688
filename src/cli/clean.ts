/** `heddle clean`: removes everything heddle built in this project. Sources and `generated/` stay. */
import { rm } from 'node:fs/promises'
import { Command } from '@commander-js/extra-typings'
import { outputs } from '../toolchain/index.js'
import type { CliContext } from './context.js'

export async function clean(context: CliContext): Promise<void> {
  const { base } = outputs(context.root)
  await rm(base, { recursive: true, force: true })
  context.log(`removed ${base}\n`)
}

export const cleanCommand = (context: () => CliContext) =>
  new Command('clean').description('remove what heddle built (.heddle)').action(() => clean(context()))
